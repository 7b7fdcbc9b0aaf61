// Tokens of Google Cloud: for a service account, by an assertion that its key signs, or for the
// machine's own account.
import { createPrivateKey, sign, type KeyObject } from "node:crypto";
import { strict, wellFormed } from "../../../config/fields.ts";
import type { CheckContext } from "../../../config/setting.ts";
import {
  fail,
  literal,
  nonEmpty,
  optional,
  refine,
  type Infer,
} from "../../../core/schema/checker.ts";
import { asObject, asString, parseJson } from "../../../core/schema/untrusted-json.ts";
import {
  bearerCredentials,
  type CredentialType,
  isSafeAddress,
  localToken,
  remoteToken,
  serviceAddress,
} from "../token-services/index.ts";

const SCOPE = "https://www.googleapis.com/auth/cloud-platform";
const METADATA = "http://metadata.google.internal";
const TOKEN_PATH = "/computeMetadata/v1/instance/service-accounts/default/token";
/** The lifetime of an assertion in seconds, which is the longest that Google accepts. */
const ASSERTION_S = 3600;

/** A service account, as its key file states it. */
interface ServiceAccount {
  readonly email: string;
  readonly keyId: string | undefined;
  /** In PEM. */
  readonly privateKey: string;
  readonly tokenUri: string;
}

const settings = strict({
  type: literal("google"),
  /**
   * The key file of a service account. Absent: the file that GOOGLE_APPLICATION_CREDENTIALS names
   * or, without it, the machine's account.
   */
  key_file: optional(nonEmpty),
  /** The scope of the token. Absent: SCOPE. */
  scope: optional(wellFormed(1)),
  /** Replaces the address in the key file, or of the metadata service. */
  endpoint: optional(serviceAddress),
});

const check = ({ env, fileText }: CheckContext) =>
  refine(settings, ({ type, key_file, scope = SCOPE, endpoint }) => {
    // The variable of Google's own programs.
    const file = key_file ?? env["GOOGLE_APPLICATION_CREDENTIALS"];
    const account = file ? serviceAccountIn(fileText(file)) : undefined;
    const { GCE_METADATA_HOST: host } = env;
    const metadata = endpoint ?? (host ? `http://${host}` : METADATA);
    return { type, scope, endpoint, account, metadata, secrets: [account?.privateKey] };
  });

export const google: CredentialType<Infer<ReturnType<typeof check>>> = {
  check,
  create: ({ scope, endpoint, account, metadata }, services) =>
    bearerCredentials(() => {
      if (!account)
        return localToken(
          ["the metadata service", `${metadata}${TOKEN_PATH}`],
          { "Metadata-Flavor": "Google" },
          services,
        );
      const fields = {
        grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
        assertion: assertionOf(account, scope, Math.floor(services.clock.now() / 1000)),
      };
      const service = ["Google's token service", endpoint ?? account.tokenUri] as const;
      return remoteToken(service, fields, services);
    }, services),
};

/** Parses a key file. Undefined: the file could not be read, where that is allowed. */
function serviceAccountIn(text: string | undefined): ServiceAccount | undefined {
  if (text === undefined) return undefined;
  const { type, client_email, private_key, private_key_id, token_uri } = asObject(parseJson(text));
  const [email, privateKey, tokenUri] = [client_email, private_key, token_uri].map(asString);
  if (type !== "service_account" || !email || !privateKey || !tokenUri || !keyIn(privateKey))
    return fail("invalid_value", "expected the key file of a service account", ["key_file"]);
  if (!isSafeAddress(tokenUri))
    return fail("invalid_value", "the key file's token_uri must be https://", ["key_file"]);
  return { email, privateKey, tokenUri, keyId: asString(private_key_id) };
}

function keyIn(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

/** A JSON Web Token with which the account asks for an access token. `now`: in seconds. */
function assertionOf(
  { email, keyId, privateKey, tokenUri }: ServiceAccount,
  scope: string,
  now: number,
): string {
  const encoded = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");
  const head = encoded({ alg: "RS256", typ: "JWT", kid: keyId });
  const claims = encoded({ iss: email, scope, aud: tokenUri, iat: now, exp: now + ASSERTION_S });
  const signature = sign("sha256", Buffer.from(`${head}.${claims}`), privateKey);
  return `${head}.${claims}.${signature.toString("base64url")}`;
}
