// Services that issue tokens, providers that require them, and the issues of a configuration.

import assert from "node:assert/strict";
import http from "node:http";
import { createServer, type ServerOptions } from "node:https";
import { ValidationError } from "../../src/core/schema/checker.ts";
import { listening } from "./listening.ts";
import { completion, status, type Asked } from "./provider.ts";
import type { Scope } from "./scope.ts";
import "./today.ts"; // for its clock

export type TokenService = Awaited<ReturnType<typeof startTokenService>>;

/**
 * Starts a service that issues a token for each request that `mayHave` accepts. It also serves the
 * discovery document of any Entra tenant. `seconds`: the life of a token. `token`: the token to
 * issue; absent: a new one each time. `tls`: the certificate for HTTPS at localhost; absent: HTTP.
 */
export async function startTokenService(
  t: Scope,
  mayHave: (req: http.IncomingMessage, form: URLSearchParams) => boolean,
  {
    seconds = 3600,
    tls = undefined as ServerOptions | undefined,
    token: always = undefined as string | undefined,
  } = {},
) {
  /** Issued tokens that providers accept. */
  const valid = new Set<string>();
  /** The answered requests: method, path and form of each. */
  const asked: string[] = [];
  const server = tls ? createServer(tls, answer) : http.createServer(answer);
  function answer(req: http.IncomingMessage, res: http.ServerResponse): void {
    let text = "";
    const [, tenant] = /^\/([\w-]+)\/v2\.0\/\.well-known\//.exec(req.url ?? "") ?? [];
    if (tenant !== undefined) {
      const path = `${url}/${tenant}/oauth2/v2.0`;
      const endpoints = {
        token_endpoint: `${path}/token`,
        authorization_endpoint: `${path}/authorize`,
      };
      res.end(JSON.stringify({ ...endpoints, issuer: `${url}/${tenant}/v2.0` }));
      return;
    }
    req.on("data", (piece: Buffer) => (text += piece.toString()));
    req.on("end", () => {
      asked.push(`${req.method} ${req.url} ${text}`);
      const isGranted = mayHave(req, new URLSearchParams(text));
      const token = always ?? `token-${asked.length}`;
      if (isGranted) valid.add(token);
      res.writeHead(isGranted ? 200 : 401, { "content-type": "application/json" });
      // App Service states when a token expires, the other services for how long it is valid.
      const life = req.headers["x-identity-header"]
        ? { expires_on: String(Math.floor(Date.now() / 1000) + seconds) }
        : { expires_in: seconds };
      const granted = { token_type: "Bearer", access_token: token, ...life };
      res.end(
        JSON.stringify(isGranted ? granted : { error: "invalid_client", error_description: text }),
      );
    });
  }
  const address = await listening(t, server);
  const url = tls ? address.replace("http://127.0.0.1", "https://localhost") : address;
  return { url, valid, asked };
}

/** Whether a request is a GET for this path with exactly this query, in any order. */
export function asksFor(
  { method, url = "" }: http.IncomingMessage,
  path: string,
  query: Readonly<Record<string, string>>,
): boolean {
  const { pathname, searchParams } = new URL(url, "http://localhost");
  const pairs = (entries: Iterable<[string, string]>) => [...entries].sort().join("&");
  const isAsked = pairs(searchParams.entries()) === pairs(Object.entries(query));
  return method === "GET" && pathname === path && isAsked;
}

/** Answers requests with a valid token, and refuses others with 401. */
export const withToken =
  ({ valid }: TokenService) =>
  (asked: Asked): void => {
    const token = /^Bearer (\S+)$/.exec(String(asked.headers.authorization))?.[1] ?? "";
    const isLet = valid.has(token) && asked.headers["api-key"] === undefined;
    const answer = isLet
      ? completion({ content: "Hi." })
      : { error: { code: "401", message: token } };
    status(isLet ? 200 : 401, answer)(asked);
  };

/** The issues that `check` throws, one line for each. */
export function issueLines(check: () => unknown): string[] {
  try {
    check();
    return [];
  } catch (error) {
    assert.ok(error instanceof ValidationError);
    return error.message.split("\n");
  }
}
