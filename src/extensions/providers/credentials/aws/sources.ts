// Finds Amazon keys that the configuration does not state, in the places where Amazon's own
// SDKs look, in the same order.
import {
  MAX_SECRET_BYTES,
  readRegularFile,
  whyUnreadable,
} from "../../../../config/regular-file.ts";
import type { Environment } from "../../../../config/secrets.ts";
import { asObject, asString, parseJson } from "../../../../core/schema/untrusted-json.ts";
import type { Clock } from "../../../../core/clock.ts";
import {
  callLocal,
  type CredentialServices,
  type Lease,
  postForm,
  type ServiceAnswer,
} from "../../token-services/index.ts";
import type { AwsKeys } from "./signature.ts";

/** The variables of the environment that are read. */
export const VARIABLES = [
  "AWS_WEB_IDENTITY_TOKEN_FILE",
  "AWS_ROLE_ARN",
  "AWS_ROLE_SESSION_NAME",
  "AWS_ENDPOINT_URL_STS",
  "AWS_CONTAINER_CREDENTIALS_FULL_URI",
  "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
  "AWS_CONTAINER_AUTHORIZATION_TOKEN",
  "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
  "AWS_EC2_METADATA_DISABLED",
  "AWS_EC2_METADATA_SERVICE_ENDPOINT",
] as const;

/** Where to look for keys. */
export interface Places {
  /** VARIABLES of the environment. */
  readonly env: Environment;
  readonly region: string;
  /** The address of STS or of the metadata service. Undefined: the usual one. */
  readonly endpoint: string | undefined;
}

/** The address that ECS gives to containers. */
const CONTAINER_HOST = "http://169.254.170.2";
const METADATA_HOST = "http://169.254.169.254";
const METADATA_TOKEN_S = "21600";

/** The machine's keys, with their expiry. Rejects with an Error for the operator. */
export function findKeys(places: Places, services: CredentialServices): Promise<Lease<AwsKeys>> {
  const { env } = places;
  if (env["AWS_WEB_IDENTITY_TOKEN_FILE"] && env["AWS_ROLE_ARN"])
    return webIdentityKeys(places, services);
  const relative = env["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"];
  const address =
    env["AWS_CONTAINER_CREDENTIALS_FULL_URI"] || (relative && CONTAINER_HOST + relative);
  return address
    ? containerKeys(address, env, services.clock)
    : metadataKeys(places, services.clock);
}

/**
 * Keys for the token of a Kubernetes service account. The token's file is rotated, so it is read
 * anew.
 */
async function webIdentityKeys(
  { env, region, endpoint }: Places,
  services: CredentialServices,
): Promise<Lease<AwsKeys>> {
  const service = "Amazon's STS";
  const address =
    endpoint ?? (env["AWS_ENDPOINT_URL_STS"] || `https://sts.${region}.amazonaws.com`);
  const fields = {
    Action: "AssumeRoleWithWebIdentity",
    Version: "2011-06-15",
    RoleArn: env["AWS_ROLE_ARN"] ?? "",
    RoleSessionName: env["AWS_ROLE_SESSION_NAME"] || "chat-gateway",
    WebIdentityToken: textOf(env["AWS_WEB_IDENTITY_TOKEN_FILE"] ?? ""),
  };
  const answer = await postForm([service, `${address}/`], fields, services, "text/xml");
  const element = (name: string) => new RegExp(`<${name}>([^<]+)</${name}>`).exec(answer.text)?.[1];
  return leaseOf(service, answer, {
    AccessKeyId: element("AccessKeyId"),
    SecretAccessKey: element("SecretAccessKey"),
    Token: element("SessionToken"),
    Expiration: element("Expiration"),
    code: element("Code"),
  });
}

/** Keys of a container of ECS or EKS. */
async function containerKeys(
  address: string,
  env: Environment,
  clock: Clock,
): Promise<Lease<AwsKeys>> {
  const service = "the credentials endpoint of the container";
  const file = env["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"];
  const token = file ? textOf(file) : env["AWS_CONTAINER_AUTHORIZATION_TOKEN"];
  const answer = await callLocal([service, address], token ? { Authorization: token } : {}, clock);
  return leaseOf(service, answer, asObject(parseJson(answer.text)));
}

/** Keys of the role of an EC2 machine, by the second version of the metadata service. */
async function metadataKeys({ env, endpoint }: Places, clock: Clock): Promise<Lease<AwsKeys>> {
  if (env["AWS_EC2_METADATA_DISABLED"]?.toLowerCase() === "true")
    throw new Error("no AWS keys were found, and the metadata service is disabled");
  const service = "Amazon's metadata service";
  const host = endpoint ?? (env["AWS_EC2_METADATA_SERVICE_ENDPOINT"] || METADATA_HOST);
  const base = host.replace(/\/+$/, "");
  const ttl = { "X-aws-ec2-metadata-token-ttl-seconds": METADATA_TOKEN_S };
  const session = await callLocal([service, `${base}/latest/api/token`], ttl, clock, "PUT");
  if (session.status !== 200) throw new Error(`${service} answered with status ${session.status}`);
  const headers = { "X-aws-ec2-metadata-token": session.text };
  const roles = `${base}/latest/meta-data/iam/security-credentials/`;
  const role = await callLocal([service, roles], headers, clock);
  if (role.status !== 200) throw new Error(`${service} has no role for this machine`);
  const name = encodeURIComponent(role.text.split("\n", 1)[0]!.trim());
  const answer = await callLocal([service, roles + name], headers, clock);
  return leaseOf(service, answer, asObject(parseJson(answer.text)));
}

/** Reads keys from a response of Amazon's services. The Error that it throws does not show them. */
function leaseOf(
  service: string,
  { status }: ServiceAnswer,
  stated: Readonly<Record<string, unknown>>,
): Lease<AwsKeys> {
  const accessKeyId = asString(stated["AccessKeyId"]);
  const secretAccessKey = asString(stated["SecretAccessKey"]);
  if (status !== 200 || !accessKeyId || !secretAccessKey) {
    const code = asString(stated["code"]) ?? "";
    const shown = /^\w{1,60}$/.test(code) ? ` (${code})` : "";
    throw new Error(`${service} answered without keys, with status ${status}${shown}`);
  }
  const end = Date.parse(asString(stated["Expiration"]) ?? "");
  const sessionToken = asString(stated["Token"]);
  const value = { accessKeyId, secretAccessKey, sessionToken };
  return { value, expiresAt: Number.isNaN(end) ? Infinity : end };
}

function textOf(file: string): string {
  try {
    return readRegularFile(file, MAX_SECRET_BYTES).bytes.toString("utf8").trim();
  } catch (error) {
    throw new Error(`the file ${file} cannot be read: ${whyUnreadable(error)}`);
  }
}
