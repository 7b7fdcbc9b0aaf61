// Services that hand out tokens, providers that want them, and the issues of a configuration.

import assert from "node:assert/strict";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { ValidationError } from "../../src/core/schema/checker.ts";
import { completion, status, type Asked } from "./provider.ts";
import type { Scope } from "./scope.ts";

export interface TokenService {
  readonly url: string;
  /** Tokens that were handed out and are still accepted. */
  readonly valid: Set<string>;
  /** Requests that it has answered, as their method, path and form. */
  readonly asked: string[];
}

/** Hands out tokens to those who `mayHave` says may have one. */
export async function startTokenService(
  t: Scope,
  mayHave: (req: http.IncomingMessage, form: URLSearchParams) => boolean,
  seconds = 3600,
): Promise<TokenService> {
  const valid = new Set<string>();
  const asked: string[] = [];
  const server = http.createServer((req, res) => {
    let text = "";
    req.on("data", (piece: Buffer) => (text += piece.toString()));
    req.on("end", () => {
      asked.push(`${req.method} ${req.url} ${text}`);
      const isGranted = mayHave(req, new URLSearchParams(text));
      const token = `token-${asked.length}`;
      if (isGranted) valid.add(token);
      res.writeHead(isGranted ? 200 : 401, { "content-type": "application/json" });
      const granted = { token_type: "Bearer", access_token: token, expires_in: seconds };
      res.end(
        JSON.stringify(isGranted ? granted : { error: "invalid_client", error_description: text }),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, valid, asked };
}

/** Answers requests that show one of these tokens. */
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

/** The issues of a configuration, a line each. */
export function issueLines(check: () => unknown): string[] {
  try {
    check();
    return [];
  } catch (error) {
    assert.ok(error instanceof ValidationError);
    return error.message.split("\n");
  }
}
