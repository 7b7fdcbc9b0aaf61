// The messages between the first process and its workers. Messages hold Maps, so they travel by
// structured clone.
import type { Config } from "../../../core/config.ts";
import type { Report } from "../../../core/extension/places.ts";

/** From a worker. Everything may be absent. */
export interface WorkerMessage {
  /** It runs, and waits for its configuration. */
  readonly born?: true;
  /** The address that it listens on. */
  readonly listening?: string;
  /** Why it cannot listen. */
  readonly failed?: string;
  /** The answer to PrimaryMessage.report. */
  readonly report?: Report;
  /** A signal asked it to stop: it does when the first process says so. */
  readonly signalled?: true;
}

/** A configuration, and the names of the extensions that it needs: code does not travel. */
export interface ConfigMessage {
  /** Checked, with every default and with its secrets. */
  readonly config: Config;
  /** In the order of src/extensions.ts. */
  readonly extensions: readonly string[];
}

/** From the first process. Everything may be absent. */
export interface PrimaryMessage {
  /** The configuration in force from now on; the first one makes the worker begin. */
  readonly configuration?: ConfigMessage;
  /** The worker is to report. */
  readonly report?: true;
  /** The worker is to drain and end. */
  readonly stop?: true;
}
