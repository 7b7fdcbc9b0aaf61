// The admin listener's paths of keys: GET /keys lists them, POST /keys makes one, DELETE /keys/{id}
// revokes one. Every change is in the log, with the user and the address that it came from.
import { statSync } from "node:fs";
import type { Config } from "../../../core/config.ts";
import { readBody } from "../../../core/http/body.ts";
import type { Exchange, Routes } from "../../../core/http/exchange.ts";
import { sendJson } from "../../../core/http/responses.ts";
import { ApiError } from "../../../core/openai/errors.ts";
import {
  array,
  fail,
  nonEmpty,
  number,
  object,
  optional,
  refine,
  string,
} from "../../../core/schema/checker.ts";
import type { Host } from "../../scale/installation/index.ts";
import {
  createKey,
  isDateToCome,
  isShownText,
  keyBudget,
  keyFile,
  keysInConfig,
  readKeys,
  revokeKey,
  SHOWN_TEXT,
  type CreatedKey,
  type ListedKey,
} from "../keys/index.ts";

/** Bytes of a body that makes a key. */
const MAX_BODY = 16_384;
/** Keys of a list: the newest. */
const MAX_LISTED = 1_000;
const NO_STORE = { "Cache-Control": "no-store" };

const shortText = refine(string(), (text) =>
  isShownText(text) ? text : fail("invalid_value", `expected ${SHOWN_TEXT}`),
);

const termsBody = object(
  {
    account: shortText,
    name: optional(shortText),
    rpm: optional(number({ min: 0, max: 9_999_999, integer: true })),
    tokens_per_minute: optional(number({ min: 0, max: 999_999_999, integer: true })),
    budget: optional(keyBudget),
    models: optional(array(nonEmpty, { min: 1, max: 1_000 })),
    expires: optional(
      refine(nonEmpty, (text) =>
        isDateToCome(text)
          ? new Date(text).toISOString()
          : fail("invalid_value", "expected a date to come such as 2027-01-31"),
      ),
    ),
  },
  { strict: true },
);

/** Lists keys. The file is read again only when it is another one. */
function createKeyList(file: string) {
  let version = "";
  let created: readonly ListedKey[] = [];
  return (config: Config) => {
    const found = statSync(file, { throwIfNoEntry: false });
    const current = found ? `${found.ino} ${found.mtimeMs} ${found.size}` : "none";
    if (current !== version) {
      created = readKeys(file).map(({ sha256: _, ...key }) => key);
      version = current;
    }
    return [
      ...keysInConfig(config).map((key) => ({ ...key, configured: true })),
      ...created.map((key) => ({ ...key, configured: false })),
    ];
  };
}

/** The name before the colon of Basic credentials. Undefined: there is none. */
function userName(authorization: string | undefined): string | undefined {
  const encoded = /^Basic +(\S+) *$/i.exec(authorization ?? "")?.[1] ?? "";
  const [name = ""] = Buffer.from(encoded, "base64").toString("utf8").split(":", 1);
  return name === "" ? undefined : name.slice(0, 100);
}

/** The terms in a body. Throws an ApiError or a ValidationError. */
async function readTerms(exchange: Exchange) {
  const text = await readBody(exchange, MAX_BODY);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new ApiError("invalid_json", "The request body is not valid JSON.");
  }
  return termsBody(json);
}

/** Throws a ValidationError if a key is to be for a model that does not exist. */
function assertModels({ models, aliases }: Config, names: readonly string[]): void {
  const index = names.findIndex((name) => !models.has(name) && !aliases.has(name));
  if (index === -1) return;
  fail("invalid_value", "there is no model or alias of this name", ["models", index]);
}

export function keyRoutes(host: Host): Routes {
  const dataDir = host.config.data_dir;
  const list = createKeyList(keyFile(dataDir));

  /** Logs a change with who made it: the user name that the browser sent, and the address. */
  function log(event: string, key: CreatedKey, { req }: Exchange): void {
    const { key_id, account } = key;
    const address = req.socket.remoteAddress;
    const user = userName(req.headers.authorization);
    host.diagnose({ event, level: "info", key_id, account, by: "console", user, address });
  }

  return {
    "/keys": {
      GET({ res }) {
        const keys = list(host.current());
        const shown = keys.slice(-MAX_LISTED);
        sendJson(res, 200, { keys: shown, total: keys.length }, NO_STORE);
      },
      async POST(exchange) {
        const {
          name = null,
          rpm = null,
          models = null,
          expires = null,
          ...rest
        } = await readTerms(exchange);
        assertModels(host.current(), models ?? []);
        const terms = { ...rest, name, rpm, models, expires };
        const { key, stored } = await createKey(dataDir, terms, host.clock.now());
        log("key_created", stored, exchange);
        const { sha256: _, ...shown } = stored;
        sendJson(exchange.res, 201, { key, ...shown }, NO_STORE);
      },
    },
    "/keys/{id}": {
      async DELETE(exchange, id) {
        const revoked = await revokeKey(dataDir, id, host.clock.now());
        if (!revoked) throw unknownKey(host.current(), id);
        log("key_revoked", revoked, exchange);
        const { key_id, account, revoked: time } = revoked;
        sendJson(exchange.res, 200, { key_id, account, revoked: time }, NO_STORE);
      },
    },
  };
}

function unknownKey(config: Config, id: string): ApiError {
  const isConfigured = keysInConfig(config).some(({ key_id }) => key_id === id);
  const message = isConfigured
    ? "This key stands in the configuration: take it out there."
    : "There is no key of this id.";
  return new ApiError("invalid_value", message, { param: "key_id" });
}
