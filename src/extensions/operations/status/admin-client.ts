// Asks the admin listener of a running gateway. It is found by the configuration: host, port,
// certificate and password.
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import http, { type IncomingMessage } from "node:http";
import net, { type Socket } from "node:net";
import tls, { type TLSSocket } from "node:tls";
import type { Config } from "../../../core/config.ts";
import { asObject, asString, parseJson } from "../../../core/schema/untrusted-json.ts";
import {
  MAX_CERTIFICATE_BYTES,
  readRegularFile,
  whyUnreadable,
} from "../../../config/regular-file.ts";
import { admin, DEFAULT_ADDRESS } from "../admin/index.ts";

/** Milliseconds within which the listener must have answered. */
const DEADLINE_MS = 5_000;
/** The most characters of an answer: no gateway sends more. */
const MAX_CHARS = 64 * 1024 * 1024;

export interface AdminClient {
  /** Where the listener is: `http://127.0.0.1:8081`. */
  readonly address: string;
  /** The body of GET `path`. Rejects with an Error whose message is for the operator. */
  get(path: string): Promise<string>;
}

/**
 * Loads only the sections needed to find the admin listener, and the user who owns the data: while
 * a gateway runs, its file may be invalid. Secrets are optional: only admin.password matters, and
 * the listener checks it.
 */
export const ADMIN_LOAD_OPTIONS = { secretsOptional: true, members: ["admin", "data_dir"] };

interface Place {
  readonly host: string;
  readonly port: number;
  readonly password: string | undefined;
  /** The file of the certificate. Undefined: plain HTTP. */
  readonly certFile: string | undefined;
}

/** Throws an Error if the configuration does not say where the listener is. */
export function createAdminClient(config: Config): AdminClient {
  const settings = admin.of(config);
  const { host: name, port } = { ...DEFAULT_ADDRESS, ...settings };
  if (port === 0)
    throw new Error("admin.port is 0, any free port: set one, or the gateway cannot be found");
  // An address for "all interfaces" cannot be connected to; loopback is one of them.
  const host = { "0.0.0.0": "127.0.0.1", "::": "::1" }[name] ?? name;
  const certFile = asString(asObject(asObject(settings)["tls"])["cert_file"]);
  const scheme = certFile === undefined ? "http" : "https";
  const address = `${scheme}://${net.isIPv6(host) ? `[${host}]` : host}:${port}`;
  const place = { host, port, password: settings?.password, certFile };
  return {
    address,
    async get(path) {
      try {
        return await ask(place, path);
      } catch (error) {
        const { code, message } = error as NodeJS.ErrnoException;
        if (error instanceof Refused) throw new Error(`${address} ${message}`);
        throw new Error(`no gateway answers at ${address}: ${code ?? message}`);
      }
    },
  };
}

/** The listener cannot be trusted, or its answer is no success. */
class Refused extends Error {}

async function ask(place: Place, path: string): Promise<string> {
  const { host, port, password } = place;
  const socket = await connect(place);
  try {
    const request = http.get({
      host,
      port,
      path,
      createConnection: () => socket,
      ...(password !== undefined && { auth: `admin:${password}` }),
    });
    request.on("error", () => undefined); // also after the response, when `once` has ended
    const [response] = (await once(request, "response")) as [IncomingMessage];
    let text = "";
    for await (const piece of response.setEncoding("utf8")) {
      text += piece;
      if (text.length > MAX_CHARS) throw new Refused("sends an answer without an end");
    }
    if (response.statusCode === 200) return text;
    throw refusal(response.statusCode, text);
  } finally {
    socket.destroy();
  }
}

/** Rejects with the network's error, after DEADLINE_MS, or with Refused. */
async function connect({ host, port, certFile }: Place): Promise<Socket> {
  const expected = certFile === undefined ? undefined : certificateIn(certFile);
  // Below, the certificate must be identical, which is stricter than a check of name and issuer.
  const socket = expected
    ? tls.connect({ host, port, rejectUnauthorized: false })
    : net.connect({ host, port });
  socket.setTimeout(DEADLINE_MS, () => socket.destroy(new Error("no answer in time")));
  await once(socket, expected ? "secureConnect" : "connect");
  if (!expected) return socket;
  if ((socket as TLSSocket).getPeerX509Certificate()?.raw.equals(expected)) return socket;
  socket.destroy();
  throw new Refused(
    "has a certificate other than admin.tls.cert_file: it gets no password. If the file was " +
      "renewed, restart the gateway",
  );
}

function certificateIn(file: string): Buffer {
  try {
    return new X509Certificate(readRegularFile(file, MAX_CERTIFICATE_BYTES).bytes).raw;
  } catch (error) {
    throw new Refused(`cannot be trusted: admin.tls.cert_file: ${file}: ${whyUnreadable(error)}`);
  }
}

function refusal(status: number | undefined, text: string): Refused {
  if (status === 401)
    return new Refused(
      "wants another password than admin.password says here: is its environment variable set, " +
        "or was it changed since the gateway's start?",
    );
  const { message } = asObject(asObject(parseJson(text))["error"]);
  return new Refused(`answers with status ${status}: ${asString(message) ?? "no gateway's words"}`);
}
