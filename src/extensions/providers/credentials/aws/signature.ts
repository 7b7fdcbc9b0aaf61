// Amazon's signature of a request, version 4: an HMAC of the request's canonical form, under a key
// that is good for one day, region and service.
import { createHmac } from "node:crypto";
import { sha256 } from "../../../../core/hash.ts";
import type { Headers, OutgoingRequest } from "../../token-services/index.ts";

/** Keys that sign. */
export interface AwsKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** The token of temporary keys. Undefined: the keys do not expire. */
  readonly sessionToken: string | undefined;
}

/** The scope of a signature. */
export interface SignatureScope {
  readonly region: string;
  /** Such as `bedrock`. */
  readonly service: string;
  /** The wall clock, in milliseconds. */
  readonly now: number;
}

const ALGORITHM = "AWS4-HMAC-SHA256";

const hmac = (key: string | Buffer, text: string): Buffer =>
  createHmac("sha256", key).update(text).digest();

/** As encodeURIComponent, but encodes all except the unreserved characters of RFC 3986. */
const encoded = (text: string): string =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );

/** `20260701T123000Z` */
const timeOf = (now: number): string => new Date(now).toISOString().replace(/[-:]|\.\d{3}/g, "");

/** The headers that sign a POST. */
export function signedHeaders(
  { url, headers, body }: Pick<OutgoingRequest, "url" | "headers" | "body">,
  { accessKeyId, secretAccessKey, sessionToken }: AwsKeys,
  { region, service, now }: SignatureScope,
): Headers {
  const { host, pathname, searchParams } = new URL(url);
  const time = timeOf(now);
  const date = time.slice(0, 8);
  const signed: Record<string, string> = {
    "content-type": headers["Content-Type"] ?? "application/json",
    host,
    "x-amz-date": time,
    ...(sessionToken !== undefined && { "x-amz-security-token": sessionToken }),
  };
  const names = Object.keys(signed).join(";");
  const query = [...searchParams].map(([name, value]) => `${encoded(name)}=${encoded(value)}`);
  const canonical = [
    "POST",
    // Encoded twice: the URL's path is encoded already.
    pathname.split("/").map(encoded).join("/"),
    query.sort().join("&"),
    ...Object.entries(signed).map(([name, value]) => `${name}:${value}`),
    "",
    names,
    sha256(body),
  ].join("\n");
  const scope = `${date}/${region}/${service}/aws4_request`;
  const dayKey = [date, region, service, "aws4_request"].reduce<string | Buffer>(
    hmac,
    `AWS4${secretAccessKey}`,
  );
  const toSign = [ALGORITHM, time, scope, sha256(canonical)].join("\n");
  const signature = hmac(dayKey, toSign).toString("hex");
  const parts = [`Credential=${accessKeyId}/${scope}`, `SignedHeaders=${names}`];
  return {
    "X-Amz-Date": time,
    ...(sessionToken !== undefined && { "X-Amz-Security-Token": sessionToken }),
    Authorization: `${ALGORITHM} ${[...parts, `Signature=${signature}`].join(", ")}`,
  };
}
