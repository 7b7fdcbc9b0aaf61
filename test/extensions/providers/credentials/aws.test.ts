// Amazon's credentials: a provider that verifies each signature independently, and the services
// that issue keys, each strict about its requests.

import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import http, { type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, it, type TestContext } from "node:test";
import { signedHeaders } from "../../../../src/extensions/providers/credentials/aws/signature.ts";
import { folder } from "../../../support/folder.ts";
import { configFor, startGateway, user } from "../../../support/gateway.ts";
import { listening } from "../../../support/listening.ts";
import { completion, startProvider, status, type Asked } from "../../../support/provider.ts";
import "../../../support/today.ts"; // for its clock

/** Secrets by key id, with the session token that must accompany them. */
type Known = Map<string, { readonly secret: string; readonly token?: string }>;

const hmac = (key: string | Buffer, text: string) =>
  createHmac("sha256", key).update(text).digest();
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

/** Whether a request is signed by a known key for this service, within five minutes of `now`. */
function isSigned({ req, body }: Asked, known: Known, service: string, now: number): boolean {
  const pattern =
    /^AWS4-HMAC-SHA256 Credential=(\w+)\/(\d{8})\/us-east-1\/([\w-]+)\/aws4_request, SignedHeaders=([\w;-]+), Signature=(\w{64})$/;
  const [, id = "", date = "", named, signed = "", signature] =
    pattern.exec(String(req.headers.authorization)) ?? [];
  const key = known.get(id);
  const time = String(req.headers["x-amz-date"]);
  const [, y, m, d, h, min, s] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(time) ?? [];
  const sentAt = Date.parse(`${y}-${m}-${d}T${h}:${min}:${s}Z`);
  if (!key || named !== service || Math.abs(sentAt - now) > 300_000) return false;
  if (req.headers["x-amz-security-token"] !== key.token) return false;
  const names = signed.split(";");
  for (const name of ["host", "x-amz-date", ...(key.token ? ["x-amz-security-token"] : [])])
    if (!names.includes(name)) return false;
  const canonical = [
    req.method,
    req.url!.replaceAll("%", "%25"),
    "",
    ...names.map((name) => `${name}:${String(req.headers[name]).trim()}`),
    "",
    signed,
    sha256(JSON.stringify(body)),
  ].join("\n");
  let signing: string | Buffer = `AWS4${key.secret}`;
  for (const part of [date, "us-east-1", service, "aws4_request"]) signing = hmac(signing, part);
  const scope = `${date}/us-east-1/${service}/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", time, scope, sha256(canonical)].join("\n");
  return hmac(signing, text).toString("hex") === signature;
}

const CONVERSED = { output: { message: { content: [{ text: "Hi." }] } }, stopReason: "end_turn" };

/**
 * A Bedrock that accepts signed requests, with a clock `ahead` of this machine's, in milliseconds.
 * `ask`: the statuses of a request at each of its services, and the log's lines.
 */
async function startBedrock(t: TestContext, known: Known, ahead = 0) {
  const { url, asked } = await startProvider(t, (asked) => {
    const isConverse = asked.path.startsWith("/model/");
    const time = Date.now() + ahead;
    const isLet = isSigned(asked, known, isConverse ? "bedrock" : "bedrock-mantle", time);
    const reply = isConverse ? CONVERSED : completion({ content: "Hi." });
    const date = new Date(time).toUTCString();
    const headers = { "content-type": "application/json", date };
    status(isLet ? 200 : 403, isLet ? reply : { message: "Signature expired" }, headers)(asked);
  });
  const ask = async (credentials: object, env: Record<string, string> = {}) => {
    const config = configFor("http://lab.invalid", [], {
      providers: { aws: { vendor: "bedrock", base_url: url, region: "us-east-1", credentials } },
      models: {
        nova: { provider: "aws", upstream_model: "amazon.nova-pro-v1:0" },
        oss: { provider: "aws", upstream_model: "openai.gpt-oss-120b" },
      },
    });
    const { chat, diagnostics } = await startGateway(t, config, {}, env);
    const statusOf = async (model: string) => (await chat({ model, messages: user("hi") })).status;
    const again = () => Promise.all([statusOf("nova"), statusOf("oss")]);
    return { statuses: [await statusOf("nova"), await statusOf("oss")], again, diagnostics };
  };
  return { ask, asked };
}

const AWS = { type: "aws" };
const FIXED = { ...AWS, access_key_id: "AKID", secret_access_key: "s3cret/Key" };

describe("Amazon's signature", () => {
  it("equals that of the published example", () => {
    const { Authorization } = signedHeaders(
      {
        url: "https://example.amazonaws.com/",
        headers: { "Content-Type": "application/x-www-form-urlencoded" },
        body: "Param1=value1",
      },
      {
        accessKeyId: "AKIDEXAMPLE",
        secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        sessionToken: undefined,
      },
      { region: "us-east-1", service: "service", now: Date.parse("2015-08-30T12:36:00Z") },
    );
    const signature = "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a";
    assert.ok(Authorization!.endsWith(`Signature=${signature}`));
  });

  it("is accepted at both services, with keys of the configuration or the environment", async (t) => {
    const known: Known = new Map([["AKID", { secret: "s3cret/Key" }]]);
    const { ask } = await startBedrock(t, known);
    assert.deepEqual((await ask(FIXED)).statuses, [200, 200]);
    known.set("AKIDENV", { secret: "env", token: "session" });
    const keys = { AWS_ACCESS_KEY_ID: "AKIDENV", AWS_SECRET_ACCESS_KEY: "env" };
    const { statuses } = await ask(AWS, { ...keys, AWS_SESSION_TOKEN: "session" });
    assert.deepEqual(statuses, [200, 200]);
    const wrong = { ...FIXED, secret_access_key: "other" };
    assert.deepEqual((await ask(wrong)).statuses, [503, 503]);
  });

  it("is right even if this machine's clock is wrong, which is reported once", async (t) => {
    const known: Known = new Map([["AKID", { secret: "s3cret/Key" }]]);
    const { ask, asked } = await startBedrock(t, known, -3_600_000);
    const { statuses, diagnostics } = await ask(FIXED);
    assert.deepEqual(statuses, [200, 200]);
    assert.equal(asked.length, 3, "one request was signed twice");
    const [told, ...more] = diagnostics.filter(({ event }) => event === "clock_differs");
    assert.deepEqual(more, []);
    assert.ok(Math.abs(Number(told!["seconds"]) + 3600) < 60);
  });
});

/** A local service that answers with `answer`. */
async function startService(
  t: TestContext,
  answer: (req: IncomingMessage, body: string, res: ServerResponse) => void,
): Promise<{ readonly url: string; readonly asked: string[] }> {
  const asked: string[] = [];
  const server = http.createServer(async (req, res) => {
    const body = await text(req);
    asked.push(`${req.method} ${req.url}`);
    answer(req, body, res);
  });
  return { url: await listening(t, server), asked };
}

/**
 * Keys with a new id each time, which Bedrock knows from then on. They end in an hour, by a clock
 * that is `ahead` of this machine's.
 */
function issuer(ahead = 0) {
  const known: Known = new Map();
  let count = 0;
  const issue = () => {
    count += 1;
    const keys = { id: `ASIA${count}`, secret: `secret${count}`, token: `token${count}` };
    known.set(keys.id, keys);
    return { ...keys, end: new Date(Date.now() + ahead + 3_600_000).toISOString() };
  };
  const asJson = () => {
    const { id: AccessKeyId, secret: SecretAccessKey, token: Token, end: Expiration } = issue();
    return JSON.stringify({ AccessKeyId, SecretAccessKey, Token, Expiration });
  };
  return { known, issue, asJson };
}

function tokenFile(token: string): string {
  const file = join(folder(), "token");
  writeFileSync(file, token);
  return file;
}

describe("keys of a machine", () => {
  it("come from STS for a web identity's token, which is read each time", async (t) => {
    const { known, issue } = issuer();
    const file = tokenFile("jwt-1\n");
    const sts = await startService(t, (req, body, res) => {
      const { WebIdentityToken, ...form } = Object.fromEntries(new URLSearchParams(body));
      const { Action, Version, RoleArn } = form;
      const asks = [req.method, Action, Version, RoleArn].join(" ");
      const isRight =
        asks === "POST AssumeRoleWithWebIdentity 2011-06-15 arn:role" &&
        /^jwt-\d$/.test(WebIdentityToken ?? "");
      if (!isRight) {
        res.writeHead(400).end("<Error><Code>InvalidIdentityToken</Code></Error>");
        return;
      }
      const { id, secret, token, end } = issue();
      res.writeHead(200, { "content-type": "text/xml" });
      res.end(
        `<R><Credentials><AccessKeyId>${id}</AccessKeyId><SecretAccessKey>${secret}</SecretAccessKey>` +
          `<SessionToken>${token}</SessionToken><Expiration>${end}</Expiration></Credentials></R>`,
      );
    });
    const { ask } = await startBedrock(t, known);
    const env = {
      AWS_WEB_IDENTITY_TOKEN_FILE: file,
      AWS_ROLE_ARN: "arn:role",
      AWS_ENDPOINT_URL_STS: sts.url,
    };
    const { statuses, again } = await ask(AWS, env);
    assert.deepEqual(statuses, [200, 200]);
    assert.deepEqual(sts.asked, ["POST /"]);
    // The keys are revoked: they are renewed once, with the token now in the file.
    known.clear();
    writeFileSync(file, "jwt-2");
    assert.deepEqual(await again(), [200, 200]);
    assert.equal(sts.asked.length, 2);
    const { diagnostics } = await ask(AWS, { ...env, AWS_ROLE_ARN: "arn:other" });
    const told = /STS answered without keys, with status 400 \(InvalidIdentityToken\)/;
    assert.match(JSON.stringify(diagnostics), told);
  });

  it("come from a container's endpoint", async (t) => {
    const { known, asJson } = issuer();
    const { url } = await startService(t, (req, _body, res) => {
      const isRight = req.url === "/creds" && req.headers.authorization === "container-token";
      res.writeHead(isRight ? 200 : 403).end(isRight ? asJson() : "{}");
    });
    const { ask } = await startBedrock(t, known);
    for (const token of [
      { AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: tokenFile("container-token\n") },
      { AWS_CONTAINER_AUTHORIZATION_TOKEN: "container-token" },
    ]) {
      const env = { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/creds`, ...token };
      assert.deepEqual((await ask(AWS, env)).statuses, [200, 200]);
    }
    const far = { AWS_CONTAINER_CREDENTIALS_FULL_URI: "http://example.com/creds" };
    const { statuses, diagnostics } = await ask(AWS, far);
    assert.deepEqual(statuses, [503, 503]);
    assert.match(JSON.stringify(diagnostics), /must be reached by https, or at a loopback/);
  });

  it("are fetched once although they have ended by this machine's clock, which is wrong", async (t) => {
    const { known, asJson } = issuer(-7_200_000);
    const { url, asked } = await startService(t, (_req, _body, res) => res.end(asJson()));
    const { ask } = await startBedrock(t, known, -7_200_000);
    const { statuses, again } = await ask(AWS, { AWS_CONTAINER_CREDENTIALS_FULL_URI: url });
    assert.deepEqual([...statuses, ...(await again())], [200, 200, 200, 200]);
    assert.equal(asked.length, 1);
  });

  it("come from the metadata service, version 2", async (t) => {
    const { known, asJson } = issuer();
    const roles = "/latest/meta-data/iam/security-credentials/";
    const { url } = await startService(t, ({ method, url, headers }, _body, res) => {
      if (method === "PUT" && url === "/latest/api/token") {
        res.end(headers["x-aws-ec2-metadata-token-ttl-seconds"] ? "imds" : "");
        return;
      }
      const answers: Record<string, () => string> = {
        [roles]: () => "my-role",
        [`${roles}my-role`]: asJson,
      };
      const isLet = method === "GET" && headers["x-aws-ec2-metadata-token"] === "imds";
      const answer = isLet ? answers[url!] : undefined;
      res.writeHead(answer ? 200 : 401).end(answer?.());
    });
    const { ask } = await startBedrock(t, known);
    const byEnv = { AWS_EC2_METADATA_SERVICE_ENDPOINT: `${url}/` };
    assert.deepEqual((await ask(AWS, byEnv)).statuses, [200, 200]);
    assert.deepEqual((await ask({ ...AWS, endpoint: url })).statuses, [200, 200]);
    const disabled = { ...byEnv, AWS_EC2_METADATA_DISABLED: "true" };
    assert.deepEqual((await ask(AWS, disabled)).statuses, [503, 503]);
  });
});
