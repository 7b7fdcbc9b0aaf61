// GET /openapi.json: the contract as an OpenAPI 3.1 document. The schema of a request is taken from
// the check itself. Extensions that serve further APIs describe them here.
import type { Config } from "../../../core/config.ts";
import { requestCheck } from "../../../core/extension/defaults.ts";
import { moment, type Extension, type Installed } from "../../../core/extension/installer.ts";
import type { Handler } from "../../../core/http/exchange.ts";
import { sendJson } from "../../../core/http/responses.ts";
import document from "./openapi.json" with { type: "json" };

/** The part that an extension adds to the document: its paths, and the schemas that they name. */
export interface Description {
  /** Path items by path, as OpenAPI has them. */
  readonly paths: Readonly<Record<string, object>>;
  /** By name. No other extension may have the name. */
  readonly schemas: Readonly<Record<string, object>>;
}

/** The document is made. Undefined: with this configuration there is nothing to describe. */
export const descriptions = moment<(config: Config) => Description | undefined>("descriptions");

/** The names of the schemas of an operation. */
export interface OperationSchemas {
  /** The schema of the request's body. */
  readonly request: string;
  /** The schema of a whole reply. */
  readonly reply: string;
  /** The schema of a stream's event. Absent: it never streams. */
  readonly event?: string;
  /** The schema of every error. */
  readonly error: string;
}

/**
 * The operation of another API in which clients ask for a reply. Keys, limits and errors are those
 * of chat completions; the schemas and the descriptions of the reply are its own.
 */
export function describeOperation(
  summary: string,
  reply: string,
  { request, reply: whole, event, error }: OperationSchemas,
): object {
  const { post } = document.paths["/v1/chat/completions"];
  const names: Readonly<Record<string, string | undefined>> = {
    ChatCompletionRequest: request,
    ChatCompletion: whole,
    ChatCompletionChunk: event,
    Error: error,
  };
  const text = JSON.stringify(post).replace(
    /(?<=#\/components\/schemas\/)\w+/g,
    (name) => names[name] ?? name,
  );
  const operation = JSON.parse(text) as typeof post;
  const good = operation.responses["200"];
  const { "text/event-stream": _stream, ...onlyWhole } = good.content;
  const content = event === undefined ? onlyWhole : good.content;
  return {
    ...operation,
    summary,
    responses: { ...operation.responses, "200": { ...good, description: reply, content } },
  };
}

/** Answers with the document for this configuration. */
export function openapiHandler(config: Config, installed: Installed): Handler {
  const described = installed.listeners(descriptions).flatMap(({ call }) => call(config) ?? []);
  const schemas: Record<string, object> = {
    ChatCompletionRequest: requestCheck(installed).schema,
    ...document.components.schemas,
  };
  const paths: Record<string, object> = { ...document.paths };
  for (const each of described) {
    Object.assign(schemas, each.schemas);
    Object.assign(paths, each.paths);
  }
  // As text: the document never changes while the process runs.
  const text = JSON.stringify({
    ...document,
    paths,
    components: { ...document.components, schemas },
  });
  return ({ res }) => sendJson(res, 200, text);
}

export const extension: Extension = {
  name: "openapi",
  install(gateway) {
    gateway.route("GET", "/openapi.json", ({ config, installed }) =>
      openapiHandler(config, installed),
    );
  },
};
