#!/bin/bash
# post_tool_use: one line for each call.

jq -r '[.session_id, .tool_name, (.tool_response | length)] | @tsv' >>tool-calls.tsv
