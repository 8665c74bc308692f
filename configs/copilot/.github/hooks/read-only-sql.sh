#!/bin/bash
# preToolUse: SQL only reads here, and never a whole table. Copilot CLI gives the arguments as a JSON string.

jq -c '
    (.toolArgs | fromjson) as $arguments
    | $arguments.sql as $sql
    | if $sql | test("\\b(insert|update|delete|merge|create|alter|drop|truncate|grant)\\b"; "i") then
        {permissionDecision: "deny",
         permissionDecisionReason: "Statements that change data are for people: ask the user to run this one."}
    elif $sql | test("^\\s*select\\b"; "i") and (test("\\blimit\\b"; "i") | not) then
        {modifiedArgs: ($arguments + {sql: ($sql | sub("[\\s;]*$"; " limit 100"))})}
    else {} end
'
