// GET /openapi.json: the contract as an OpenAPI 3.1 document. The schema of a request is taken from
// the check itself. Extensions that serve further APIs describe them here.
import { requestCheck } from "../../../core/extension/places.ts";
import { hook, type Installed, type Installer } from "../../../core/extension/installer.ts";
import type { Handler } from "../../../core/http/exchange.ts";
import { sendJson } from "../../../core/http/responses.ts";

/** What an extension adds to the document: operations, and the schemas that they refer to. */
export interface Description {
  /** POST operations with a model's reply, by path. */
  readonly operations: Readonly<Record<string, Operation>>;
  /** Schemas by name, which must be unique among extensions. */
  readonly schemas: Readonly<Record<string, object>>;
}

/** The document is built. Each listener returns its extension's description. */
export const descriptions = hook<() => Description>("descriptions");

/** An operation of another API. Limits and errors are those of chat completions. */
interface Operation {
  readonly summary: string;
  /** The security requirements of OpenAPI: where the key may be. */
  readonly security: readonly object[];
  /** The description of a successful reply. */
  readonly reply: string;
  /**
   * By name of a schema of chat completions: the name of the schema that replaces it. Without one
   * for ChatCompletionChunk the operation does not stream.
   */
  readonly names: Readonly<Record<string, string>>;
}

const openDocument = async () =>
  (await import("./openapi.json", { with: { type: "json" } })).default;

/** Builds an operation from the one of chat completions. */
function pathItem(
  document: Awaited<ReturnType<typeof openDocument>>,
  { summary, security, reply, names }: Operation,
): object {
  const { post } = document.paths["/v1/chat/completions"];
  const text = JSON.stringify(post).replace(
    /(?<=#\/components\/schemas\/)\w+/g,
    (name) => names[name] ?? name,
  );
  const operation = JSON.parse(text) as typeof post;
  const success = operation.responses["200"];
  const { "text/event-stream": _stream, ...onlyWhole } = success.content;
  const content = names["ChatCompletionChunk"] ? success.content : onlyWhole;
  const responses = { ...operation.responses, "200": { ...success, description: reply, content } };
  return { post: { ...operation, summary, security, responses } };
}

/** Sends the document. Builds it at the first request. */
export function openapiHandler(installed: Installed): Handler {
  let text: string | undefined;
  return async ({ res }) => {
    text ??= await documentOf(installed);
    sendJson(res, 200, text);
  };
}

/** The document as text. It never changes while the process runs. */
async function documentOf(installed: Installed): Promise<string> {
  const document = await openDocument();
  const schemas: Record<string, object> = {
    ChatCompletionRequest: requestCheck(installed).schema,
    ...document.components.schemas,
  };
  const paths: Record<string, object> = { ...document.paths };
  for (const { call } of installed.listeners(descriptions)) {
    const description = call();
    Object.assign(schemas, description.schemas);
    for (const [path, operation] of Object.entries(description.operations))
      paths[path] = pathItem(document, operation);
  }
  const components = { ...document.components, schemas };
  return JSON.stringify({ ...document, paths, components });
}

export function install(gateway: Installer): void {
  gateway.route("GET", "/openapi.json", ({ installed }) => openapiHandler(installed));
}
