// An MCP server written with the TypeScript SDK. Usage: node typescript_server.mjs NODE_MODULES http|json|sse
// It prints its port. `sse` is HTTP+SSE of 2024-11-05, `json` answers without streams.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const [, , modules, mode] = process.argv;
const load = (path) => import(pathToFileURL(`${modules}/${path}`));
const sdk = (name) => load(`@modelcontextprotocol/sdk/dist/esm/server/${name}.js`);
const { McpServer } = await sdk("mcp");
const { StreamableHTTPServerTransport } = await sdk("streamableHttp");
const { SSEServerTransport } = await sdk("sse");
const { z } = await load("zod/index.js");

const transports = new Map();
let forgets = false; // the next request finds its session closed

function server() {
  const made = new McpServer({ name: "typescript", version: "1" }, { capabilities: { logging: {} } });
  const text = (value) => ({ content: [{ type: "text", text: value }] });
  made.registerTool("echo", { inputSchema: { word: z.string() } }, async ({ word }) => text(`you said ${word}`));
  made.registerTool("breaks", { inputSchema: {} }, async () => {
    throw new Error("it broke");
  });
  made.registerTool("logs", { inputSchema: {} }, async (_, extra) => {
    await extra.sendNotification({ method: "notifications/message", params: { level: "info", data: "a line" } });
    return text("logged");
  });
  made.registerTool("asks", { inputSchema: {} }, async () => {
    const requestedSchema = { type: "object", properties: { name: { type: "string" } } };
    const { action, content } = await made.server.elicitInput({ message: "Who?", requestedSchema });
    return text(`${action} ${content?.name}`);
  });
  made.registerTool("forgets", { inputSchema: {} }, async () => {
    forgets = true;
    return text("soon");
  });
  return made;
}

async function streamable(request, response) {
  let transport = transports.get(request.headers["mcp-session-id"]);
  if (!transport) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: mode === "json",
      onsessioninitialized: (id) => transports.set(id, transport),
    });
    await server().connect(transport);
  } else if (forgets) {
    forgets = false;
    await transport.close(); // the SDK answers 404 from now on
  }
  await transport.handleRequest(request, response);
}

async function older(request, response) {
  const url = new URL(request.url, "http://localhost");
  if (request.method === "GET") {
    const transport = new SSEServerTransport("/messages", response);
    transports.set(transport.sessionId, transport);
    await server().connect(transport);
  } else if (url.pathname === "/messages") {
    await transports.get(url.searchParams.get("sessionId")).handlePostMessage(request, response);
  } else {
    response.writeHead(405).end();
  }
}

const listener = createServer(mode === "sse" ? older : streamable);
listener.listen(0, "127.0.0.1", () => console.log(listener.address().port));
