// Runs one plugin of OpenCode: reads an event on each line of standard input, and prints one line for each.
//
// How it works: the module is loaded with the first event, and each function that it exports is called once with what
// OpenCode's page on plugins names: project, directory, worktree, client, $. Its working directory is the project's, but only
// then: Bun is started elsewhere, so that it reads no bunfig.toml and .env of the project, which the agent can write. What the
// functions return stays. An event
// calls those of its name, one after another, on the same `output`. What one throws is printed as the reason of a denial,
// and nothing after it runs; arguments that are not the same any more are printed as `args`. Standard output is for these lines
// alone: what a plugin prints goes to standard error. A module that cannot be loaded ends the process with one line.

import { spawn } from "node:child_process"
import { closeSync, existsSync, openSync, readFileSync, writeSync } from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { createInterface } from "node:readline"
import { pathToFileURL } from "node:url"
import process from "node:process"

const path = resolve(process.argv[2])
const isBun = typeof globalThis.Bun !== "undefined"

const answers = openSync("/dev/fd/1", "w") // no program that the plugin starts inherits this descriptor
closeSync(1)
if (openSync("/dev/fd/2", "w") !== 1) fail("standard output cannot be kept from what the plugin starts") // the lowest is taken

function print(value) {
  let rest = Buffer.from(JSON.stringify(value) + "\n")
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(answers, rest))
    } catch (error) {
      if (error.code !== "EAGAIN") throw error // a pipe that is full
    }
  }
}

function fail(text) {
  writeSync(2, `${text}\n`)
  process.exit(1)
}

// --- what a plugin gets ---

/** OpenCode's client, which is not there: logging goes to standard error, and everything else fails in words. */
function client(name) {
  const call = async (options) => {
    if (name === "client.app.log") {
      const { service = basename(path), level = "info", message = "" } = options?.body ?? options ?? {}
      console.error(`${level} ${service}: ${message}`)
      return { data: true }
    }
    throw new Error(`${name} needs OpenCode itself, which is not there when its plugins run behind MCP`)
  }
  return new Proxy(call, {
    get: (_target, key) => (typeof key === "string" && key !== "then" ? client(`${name}.${key}`) : undefined),
  })
}

const word = (value) => `'${String(value).replaceAll("'", "'\\''")}'`
const quoted = (value) => (value?.raw !== undefined ? value.raw : Array.isArray(value) ? value.map(quoted).join(" ") : word(value))

/** Bun's shell as far as plugins use it: a command line whose values are words, and what it has printed. */
function shell(parts, ...values) {
  const line = parts.raw ? parts.map((part, at) => part + (at < values.length ? quoted(values[at]) : "")).join("") : ""
  const options = { cwd: undefined, env: process.env }
  let isQuiet = false
  let throws = true
  let running
  const start = () => {
    running ??= new Promise((done, failed) => {
      const child = spawn("/bin/sh", ["-c", line], { ...options, stdio: ["ignore", "pipe", "pipe"] })
      const [out, err] = [[], []]
      child.stdout.on("data", (data) => { out.push(data); if (!isQuiet) process.stderr.write(data) })
      child.stderr.on("data", (data) => { err.push(data); if (!isQuiet) process.stderr.write(data) })
      child.on("error", failed)
      child.on("close", (code, signal) => {
        const result = { exitCode: code ?? (signal ? 128 : 1), stdout: Buffer.concat(out), stderr: Buffer.concat(err) }
        result.text = () => result.stdout.toString()
        result.json = () => JSON.parse(result.text())
        if (throws && result.exitCode !== 0) {
          failed(Object.assign(new Error(`Failed with exit code ${result.exitCode}`), result))
        } else {
          done(result)
        }
      })
    })
    return running
  }
  const command = {
    then: (done, failed) => start().then(done, failed),
    catch: (failed) => start().catch(failed),
    finally: (last) => start().finally(last),
    quiet: () => { isQuiet = true; return command },
    nothrow: () => { throws = false; return command },
    throws: (value) => { throws = value; return command },
    cwd: (folder) => { options.cwd = folder; return command },
    env: (variables) => { options.env = variables; return command },
    text: () => { isQuiet = true; return start().then((result) => result.text()) },
    json: () => { isQuiet = true; return start().then((result) => result.json()) },
    arrayBuffer: () => { isQuiet = true; return start().then((result) => result.stdout) },
    lines: async function* () {
      for (const text of (await command.text()).split("\n")) if (text) yield text
    },
  }
  return command
}

function worktreeOf(folder) {
  for (let at = folder; ; at = dirname(at)) {
    if (existsSync(join(at, ".git"))) return at
    if (dirname(at) === at) return "/" // as OpenCode says where there is no repository
  }
}

// --- the plugin ---

function check() {
  if (isBun || !/\.[mc]?ts$/.test(path) || process.features.typescript) return
  fail(`${basename(path)} is in TypeScript, which needs Bun, or Node 22.18 or newer: this is Node ${process.versions.node}`)
}

async function load(directory) {
  process.chdir(directory)
  const worktree = worktreeOf(directory)
  const project = { id: "global", worktree, time: { created: Date.now() } }
  if (worktree !== "/") project.vcs = "git"
  const serverUrl = new URL("http://localhost:4096")
  const input = { client: client("client"), project, directory, worktree, serverUrl, $: isBun ? globalThis.Bun.$ : shell }
  const module = await import(pathToFileURL(path).href)
  const exported = new Set(Object.values(module).flatMap((value) => (value?.default ? [value.default] : [value])))
  if (exported.size === 0 && readFileSync(path, "utf8").includes("tool.execute.")) throw new Error("it exports no plugin")
  const hooks = []
  for (const value of exported) {
    const plugin = typeof value === "function" ? value : value?.server
    if (typeof value?.setup === "function") throw new Error("it is a plugin of OpenCode V2, which cannot run here")
    if (typeof plugin !== "function") throw new Error("it exports something that is not a function")
    hooks.push((await plugin(input)) ?? {})
  }
  return hooks
}

/** A number of a JSON text that is another one once it was read; undefined: there is none. */
function lostNumber(text) {
  const numbers = text.replace(/"(?:[^"\\]|\\.)*"/g, "").match(/-?\d[\d.eE+-]*/g) ?? []
  return numbers.find((spelled) => /^-?\d+$/.test(spelled) ? BigInt(spelled) !== exactly(Number(spelled)) : !keeps(spelled))
}

const exactly = (value) => (Number.isFinite(value) ? BigInt(value) : undefined)
const digits = (spelled) => spelled.replace(/[eE].*|[-.]/g, "").replace(/^0+|0+$/g, "")
const keeps = (spelled) => Number.isFinite(Number(spelled)) && digits(spelled) === digits(String(Number(spelled)))

let loading

async function answer(line) {
  const { hook, directory, input, output } = JSON.parse(line)
  loading ??= load(directory).catch((error) => fail(`${basename(path)} cannot be loaded: ${error?.message ?? error}`))
  const before = JSON.stringify(output.args)
  for (const hooks of await loading) {
    const run = hooks[hook]
    if (run === undefined) continue
    try {
      await run(input, output)
    } catch (error) {
      return { decision: "deny", reason: String(error?.message ?? error) }
    }
  }
  if (hook !== "tool.execute.before") return {}
  const { args } = output
  if (typeof args !== "object" || args === null || Array.isArray(args)) {
    return { decision: "deny", reason: "the plugin has left no arguments in output.args" }
  }
  if (JSON.stringify(args) === before) return {}
  const lost = lostNumber(line)
  if (lost === undefined) return { args }
  return { decision: "deny", reason: `the plugin rewrites arguments with ${lost}, a number that JavaScript cannot hold` }
}

check()
let turn = Promise.resolve()
createInterface({ input: process.stdin }).on("line", (line) => {
  turn = turn.then(async () => print(await answer(line)))
  turn.catch((error) => fail(String(error?.stack ?? error)))
}).on("close", () => turn.finally(() => process.exit(0)))
