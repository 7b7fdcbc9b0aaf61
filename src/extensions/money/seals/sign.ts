// Signs JSON objects with the key of a data_dir, and verifies them. The file `keys.seal` has the 32
// secret bytes of an Ed25519 key as 64 hex digits, and is made once. A signed object ends with the
// member `signature`: the Ed25519 signature of the SHA-256 of the text without that member.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  sign,
  verify,
  type KeyObject,
} from "node:crypto";
import { join } from "node:path";
import { section } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import type { Config } from "../../../core/config.ts";
import { boolean, withDefault } from "../../../core/schema/checker.ts";
import { readOrCreateHex } from "../../scale/data-files/index.ts";
import type { Signer } from "../usage/index.ts";
import { printSealedStatement } from "./print-statement.ts";

/** `enabled`: whether the lines of closed days are signed. */
export const seals = defineSetting(
  "seals",
  { enabled: false },
  () => section({ enabled: withDefault(boolean(), false) }),
  { fixed: true },
);

/** The DER prefix of a private Ed25519 key in PKCS #8 (RFC 8410). The secret bytes follow it. */
const PRIVATE_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");
/** The DER prefix of a public Ed25519 key (RFC 8410). The bytes of the key follow it. */
const PUBLIC_PREFIX = Buffer.from("302a300506032b6570032100", "hex");
const HEX_KEY = /^[0-9a-f]{64}$/;
const SIGNATURE_AT_END = /,"signature":"([0-9a-f]{128})"\}$/;

/** The path of the key file of a data_dir. */
export const keyFile = (dataDir: string): string => join(dataDir, "keys.seal");

/** Reads the key of a data_dir, or makes it. Throws if it can be neither read nor made. */
function readKey(dataDir: string): KeyObject {
  const secret = Buffer.from(readOrCreateHex(keyFile(dataDir), 32), "hex");
  return createPrivateKey({
    key: Buffer.concat([PRIVATE_PREFIX, secret]),
    format: "der",
    type: "pkcs8",
  });
}

const hexOf = (key: KeyObject): string =>
  key.export({ format: "der", type: "spki" }).subarray(PUBLIC_PREFIX.length).toString("hex");

const digestOf = (text: string): Buffer => createHash("sha256").update(text).digest();

/** Signs for a data_dir. Each use reads the key, and makes it if there is none. */
export function createSigner(dataDir: string): Signer {
  const signatureOf = (digest: Buffer): string =>
    sign(null, digest, readKey(dataDir)).toString("hex");
  const signer: Signer = {
    get publicHex() {
      return hexOf(createPublicKey(readKey(dataDir)));
    },
    sign: (json) => `${json.slice(0, -1)},"signature":"${signatureOf(digestOf(json))}"}`,
    signatureOf,
    printStatement: (books, makeBill, print) =>
      printSealedStatement(signer, books, makeBill, print),
  };
  return signer;
}

/** As signerSlot: the signer of a data_dir. Undefined: `seals.enabled` is false. */
export const openSigner = (config: Config, dataDir: string): Signer | undefined =>
  seals.of(config).enabled ? createSigner(dataDir) : undefined;

/** A public key in PEM, the format that other programs read. */
export const publicPem = (publicHex: string): string =>
  publicKeyOf(publicHex).export({ format: "pem", type: "spki" }).toString();

/** The 64 hex digits of a public key in PEM. Throws if it is not an Ed25519 key. */
export function publicHexOf(pem: string): string {
  const key = createPublicKey(pem);
  if (key.asymmetricKeyType !== "ed25519") throw new Error("it is not an Ed25519 key");
  return hexOf(key);
}

function publicKeyOf(publicHex: string): KeyObject {
  const der = Buffer.concat([PUBLIC_PREFIX, Buffer.from(publicHex, "hex")]);
  return createPublicKey({ key: der, format: "der", type: "spki" });
}

/** Whether a JSON text without a line end is signed by a public key, 64 hex digits. */
export function isSignedBy(text: string, publicHex: string): boolean {
  const found = SIGNATURE_AT_END.exec(text.slice(-160));
  if (!found || !HEX_KEY.test(publicHex)) return false;
  const body = `${text.slice(0, -found[0].length)}}`;
  const signature = Buffer.from(found[1] ?? "", "hex");
  return verify(null, digestOf(body), publicKeyOf(publicHex), signature);
}
