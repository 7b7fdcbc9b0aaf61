// A token that a command prints, for services without a type of their own:
//   { "type": "command", "run": ["gcloud", "auth", "print-access-token"], "ttl_s": 3000 }
import { execFile, type ExecFileException } from "node:child_process";
import { integer, wellFormed, strict } from "../../../config/fields.ts";
import { array, literal, refine, type Infer } from "../../../core/schema/checker.ts";
import { bearerCredentials, type CredentialType, type Lease } from "../token-services/index.ts";

/** A command is killed after this time. */
const DEADLINE_MS = 30_000;
const MAX_OUTPUT_BYTES = 64 * 1024;

const settings = strict({
  type: literal("command"),
  /** The program and its arguments. It runs without a shell. */
  run: array(wellFormed(1), { min: 1 }),
  /** How long a token lives, in seconds. */
  ttl_s: integer(1, 86_400),
});

const check = () => refine(settings, (values) => ({ ...values, secrets: [] }));

export const command: CredentialType<Infer<ReturnType<typeof check>>> = {
  check,
  create: ({ run, ttl_s }, services) =>
    bearerCredentials(async (): Promise<Lease<string>> => {
      // The token's lifetime may have begun when the command started.
      const expiresAt = services.clock.now() + ttl_s * 1000;
      return { value: await outputOf(run), expiresAt };
    }, services),
};

/** Resolves with the output of the command, trimmed. */
function outputOf([program = "", ...args]: readonly string[]): Promise<string> {
  const options = {
    timeout: DEADLINE_MS,
    // A command may ignore SIGTERM, and would then block all later requests for a token.
    killSignal: "SIGKILL",
    maxBuffer: MAX_OUTPUT_BYTES,
  } as const;
  return new Promise((resolve, reject) => {
    execFile(program, args, options, (error, stdout) => {
      const token = stdout.trim();
      // Errors never quote the command's output, on stdout or stderr: it may be secret.
      if (error) reject(new Error(`the command ${program} failed: ${whyFailed(error)}`));
      else if (/^[\x21-\x7e]+$/.test(token)) resolve(token);
      else reject(new Error(`the command ${program} printed no token: expected one word of ASCII`));
    });
  });
}

function whyFailed({ code, killed, signal }: ExecFileException) {
  if (killed) return `it was stopped, after ${DEADLINE_MS / 1000} seconds or by too much output`;
  return signal ? `signal ${signal}` : `${typeof code === "number" ? "exit code " : ""}${code}`;
}
