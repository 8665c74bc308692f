// Refuses words that no tool may get.
import { createInterface } from "node:readline";

const forbidden = /\b(hunter2|swordfish)\b/;
for await (const line of createInterface({ input: process.stdin })) {
  const { id, tool_input } = JSON.parse(line);
  const found = forbidden.exec(JSON.stringify(tool_input));
  const answer = found ? { decision: "block", reason: `${found[1]} is a secret.` } : {};
  console.log(JSON.stringify({ id, ...answer }));
}
