// Calls token services: public ones through the provider's own transport, and so through its proxy;
// services of the machine itself directly.
import type { Clock } from "../../../core/clock.ts";
import { Cancel } from "../../../core/http/cancel.ts";
import { asObject, asString, parseJson } from "../../../core/schema/untrusted-json.ts";
import { fail, refine } from "../../../core/schema/checker.ts";
import { readAll } from "../../../core/upstream/body.ts";
import { url } from "../../../config/fields.ts";
import type { Credentials, CredentialServices, Headers } from "./credentials.ts";
import { createLeaseCache, type Lease } from "./lease-cache.ts";

/** A token service that has not answered within this time counts as unreachable. */
const DEADLINE_MS = 10_000;
const MAX_ANSWER_BYTES = 256 * 1024;

/**
 * Hosts to which secrets may go without TLS: this machine, and addresses that no router forwards.
 * The last two are the metadata services of Amazon and Google.
 */
const PLAIN_HOSTS = new RegExp(
  "^(localhost|127\\.[\\d.]+|\\[::1\\]|169\\.254\\.[\\d.]+|\\[fe80:.*\\]" +
    "|\\[fd00:ec2::[\\da-f]+\\]|metadata\\.google\\.internal)$",
);

/** Whether secrets may be sent to this address. */
export const isSafeAddress = (address: string): boolean =>
  URL.canParse(address) &&
  (new URL(address).protocol === "https:" || PLAIN_HOSTS.test(new URL(address).hostname));

/** The address of a token service. */
export const serviceAddress = refine(url, (address) =>
  isSafeAddress(address)
    ? address
    : fail("invalid_value", "expected https://, or http:// to a loopback or link-local address"),
);

/** An answer of a token service. */
export interface ServiceAnswer {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly text: string;
}

/** The name of a service for the operator, and its address. */
export type TokenService = readonly [name: string, address: string];

/** Runs `call`, and aborts its `cancel` at the deadline. */
async function withDeadline(
  [service, address]: TokenService,
  clock: Clock,
  call: (cancel: Cancel) => Promise<ServiceAnswer>,
): Promise<ServiceAnswer> {
  if (!isSafeAddress(address))
    throw new Error(`${service} must be reached by https, or at a loopback or link-local address`);
  const cancel = new Cancel();
  const timeout = new Error(`no answer within ${DEADLINE_MS / 1000} seconds`);
  const timer = clock.after(DEADLINE_MS, () => cancel.abort(timeout));
  try {
    return await call(cancel);
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const why = cause instanceof Error ? cause.message : "an exception that is no Error";
    throw new Error(`${service} could not be reached: ${why}`, { cause: error });
  } finally {
    timer.cancel();
  }
}

/** Sends a form to a service on the internet. `accept`: the media type of its answer. */
export const postForm = (
  service: TokenService,
  fields: Readonly<Record<string, string>>,
  { clock, transport }: CredentialServices,
  accept = "application/json",
): Promise<ServiceAnswer> =>
  withDeadline(service, clock, async (cancel) => {
    const { status, headers, body } = await transport(service[1], {
      method: "POST",
      redirect: "manual",
      headers: { "Content-Type": "application/x-www-form-urlencoded", Accept: accept },
      body: new URLSearchParams(fields).toString(),
      cancel,
      connectMs: DEADLINE_MS,
      sent: () => undefined,
    });
    return { status, headers, text: body ? await readAll(body, MAX_ANSWER_BYTES) : "" };
  });

/** Calls a service of this machine, without a proxy. */
export const callLocal = (
  service: TokenService,
  headers: Headers,
  clock: Clock,
  method: "GET" | "PUT" = "GET",
): Promise<ServiceAnswer> =>
  withDeadline(service, clock, async ({ signal }) => {
    const answer = await fetch(service[1], { method, headers, redirect: "error", signal });
    return { status: answer.status, headers: answer.headers, text: await answer.text() };
  });

/**
 * The bearer token in an answer. Throws an Error for the operator if it has none: with the status
 * and the service's own code, but not its message, which may quote the request.
 */
function tokenIn(service: string, answer: ServiceAnswer, now: number): Lease<string> {
  const { access_token, expires_in, expires_on, error } = asObject(parseJson(answer.text));
  const value = asString(access_token) ?? "";
  // The token becomes the value of a header.
  if (answer.status === 200 && /^[\x21-\x7e]+$/.test(value)) {
    const seconds = Number(expires_in ?? Number(expires_on) - now / 1000);
    if (seconds > 0) return { value, expiresAt: now + seconds * 1000 };
  }
  const code = typeof error === "string" && /^\w{1,60}$/.test(error) ? ` (${error})` : "";
  const what = answer.status === 200 ? "without a token" : `with status ${answer.status}${code}`;
  throw new Error(`${service} answered ${what}`);
}

/** Gets a bearer token from a service on the internet. Rejects as tokenIn() throws. */
export async function remoteToken(
  service: TokenService,
  fields: Readonly<Record<string, string>>,
  services: CredentialServices,
): Promise<Lease<string>> {
  const now = services.clock.now();
  return tokenIn(service[0], await postForm(service, fields, services), now);
}

/** Gets a bearer token from a service of this machine. Rejects as tokenIn() throws. */
export async function localToken(
  service: TokenService,
  headers: Headers,
  { clock }: CredentialServices,
): Promise<Lease<string>> {
  const now = clock.now();
  return tokenIn(service[0], await callLocal(service, headers, clock), now);
}

/** Returns the function that reports to the operator that no token could be obtained. */
export const reportFailure =
  ({ diagnose, destination: { provider } }: CredentialServices) =>
  (error: unknown): void => {
    const detail = error instanceof Error ? error.message : "an exception that is no Error";
    diagnose({ event: "credentials_failed", level: "error", provider, detail });
  };

/** `obtain` gets a token, or rejects with an Error whose message is for the operator. */
export function bearerCredentials(
  obtain: () => Promise<Lease<string>>,
  services: CredentialServices,
): Credentials {
  const token = createLeaseCache(obtain, services.clock, reportFailure(services));
  const headers = (value: string) => ({ Authorization: `Bearer ${value}` });
  return {
    headersFor() {
      const value = token.get();
      return typeof value === "string" ? headers(value) : value.then(headers);
    },
    refused: ({ Authorization = "" }) => token.refuse(Authorization.replace("Bearer ", "")),
  };
}
