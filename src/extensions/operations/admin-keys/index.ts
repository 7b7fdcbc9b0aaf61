// Keys on the admin listener, for the console: GET /keys lists them, POST /keys creates one, DELETE
// /keys/{id} revokes one. Logs each change, with the user and the client's address.
import { strict } from "../../../config/fields.ts";
import type { Config } from "../../../core/config.ts";
import { readBody } from "../../../core/http/body.ts";
import type { Exchange, Routes } from "../../../core/http/exchange.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import { sendJson } from "../../../core/http/responses.ts";
import { ApiError } from "../../../core/openai/errors.ts";
import { string, ValidationError, withDefault } from "../../../core/schema/checker.ts";
import {
  answering,
  isSystemError,
  NO_STORE,
  once,
  type Host,
} from "../../scale/installation/index.ts";
import {
  checkedTerms,
  createKey,
  isConfigured,
  keyFile,
  keysInConfig,
  listed,
  readKeys,
  revokeKey,
  type CreatedKey,
  type ListedKey,
} from "../keys/index.ts";

export function install(gateway: Installer): void {
  gateway.on(once, (host) => ({ adminRoutes: keyRoutes(host) }));
}

/** The most bytes of the body of POST /keys. */
const MAX_BODY = 16_384;
/** The most keys in a list. If there are more, the list lacks the oldest created ones. */
const MAX_LISTED = 1_000;

/** `find`: a part of the id, the account or the name; case does not matter. */
const listQuery = strict({ find: withDefault(string(), "") });

const fits =
  (find: string) =>
  ({ key_id, account, name }: ListedKey): boolean =>
    [key_id, account, name ?? ""].some((text) => text.toLowerCase().includes(find.toLowerCase()));

/** The keys of keys.json, and of the configuration. */
const allKeys = (dataDir: string, config: Config) => [
  ...readKeys(keyFile(dataDir)).map((key) => ({ ...listed(key), configured: false })),
  ...keysInConfig(config).map((key) => ({ ...key, configured: true })),
];

/** The user name in Basic credentials. Undefined: there is none. */
function userName(authorization: string | undefined): string | undefined {
  const encoded = /^Basic +(\S+) *$/i.exec(authorization ?? "")?.[1] ?? "";
  const [name = ""] = Buffer.from(encoded, "base64").toString("utf8").split(":", 1);
  return name === "" ? undefined : name.slice(0, 100);
}

/** The JSON of a body. Throws an ApiError. */
const readJson = (exchange: Exchange): Promise<unknown> =>
  readBody(exchange, MAX_BODY, (text) => {
    try {
      return JSON.parse(text);
    } catch {
      throw new ApiError("invalid_json", "The request body is not valid JSON.");
    }
  });

/** Runs `work` on keys.json. If that fails, the answer is a 5xx: the request is not at fault. */
async function fromFile<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ValidationError) throw new ApiError("internal_error", error.message);
    if (!isSystemError(error)) throw error;
    const { message } = error as Error;
    const text = `Nothing was changed, because keys.json cannot be read or written: ${message}`;
    throw new ApiError("server_overloaded", text, { cause: error });
  }
}

function keyRoutes(host: Host): Routes {
  const dataDir = host.config.data_dir;

  /** Logs a change with who made it: the user name that the browser sent, and the address. */
  function log(event: string, key: CreatedKey, { req }: Exchange): void {
    const { key_id, account } = key;
    const address = req.socket.remoteAddress;
    const user = userName(req.headers.authorization);
    host.diagnose({ event, level: "info", key_id, account, by: "console", user, address });
  }

  return {
    "/keys": {
      ...answering(listQuery, async ({ find }) => {
        const keys = await fromFile(() => allKeys(dataDir, host.current()).filter(fits(find)));
        return { keys: keys.slice(-MAX_LISTED), total: keys.length };
      }),
      async POST(exchange) {
        const terms = checkedTerms(await readJson(exchange), host.current());
        const { key, stored } = await fromFile(() => createKey(dataDir, terms, host.clock.now()));
        log("key_created", stored, exchange);
        sendJson(exchange.res, 201, { key, ...listed(stored) }, NO_STORE);
      },
    },
    "/keys/{id}": {
      async DELETE(exchange, id) {
        if (isConfigured(host.current(), id))
          throw wrongKey("This key is in the configuration: remove it there.");
        const revoked = await fromFile(() => revokeKey(dataDir, id, host.clock.now()));
        if (!revoked) throw wrongKey("There is no key of this id.");
        log("key_revoked", revoked, exchange);
        const { key_id, account, revoked: time } = revoked;
        sendJson(exchange.res, 200, { key_id, account, revoked: time }, NO_STORE);
      },
    },
  };
}

const wrongKey = (message: string): ApiError =>
  new ApiError("invalid_value", message, { param: "key_id" });
