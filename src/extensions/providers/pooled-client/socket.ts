// Sockets to a provider, over TCP or TLS.
import net from "node:net";
import tls from "node:tls";

/**
 * All sockets read into this memory: no code keeps the bytes until the next read. Node would
 * allocate 64 KiB for each read, which costs more than to copy what is kept.
 */
const READ_MEMORY = Buffer.allocUnsafeSlow(64 * 1024);

/**
 * TCP looks after a silent server when so many milliseconds have passed: a model may think for
 * minutes, and the network may forget a connection in the meantime.
 */
const KEEP_ALIVE_MS = 15_000;

/** What a connection needs of its socket. */
export interface ProviderSocket
  extends Pick<net.Socket, "isPaused" | "pause" | "ref" | "resume" | "unref" | "writableLength"> {
  write(bytes: Uint8Array | string): unknown;
  destroy(): unknown;
  on(event: "end" | "close", listener: () => void): this;
  on(event: "error", listener: (error: Error) => void): this;
}

/**
 * Opens a socket to one origin. `opened` is called when the connection is established, and secure
 * if it is to be; `receive` when bytes have come, which are valid during this call only.
 */
export type Connect = (opened: () => void, receive: (bytes: Buffer) => void) => ProviderSocket;

/** Other authorities than those of Node, or a certificate of this client. Absent: neither. */
export type SecureOptions = Pick<tls.ConnectionOptions, "secureContext">;

/**
 * What node:net and node:tls do by themselves: they try all addresses of a host, those of both
 * families side by side (RFC 8305), and verify the certificate against the authorities of Node,
 * with those of NODE_EXTRA_CA_CERTS, unless `secured` has others.
 */
export function connectTo({ protocol, hostname, port }: URL, secured: SecureOptions = {}): Connect {
  const isSecure = protocol === "https:";
  const host = hostname.replace(/^\[|\]$/g, ""); // an IPv6 address
  const usualPort = isSecure ? 443 : 80;
  // RFC 6066, section 3: an address is no server name.
  const secureOptions: tls.ConnectionOptions = {
    ...secured,
    ...(net.isIP(host) === 0 && { servername: host }),
    ALPNProtocols: ["http/1.1"],
  };

  return (opened, receive) => {
    const options = {
      host,
      port: port === "" ? usualPort : Number(port),
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
      onread: {
        buffer: READ_MEMORY,
        callback(size: number) {
          receive(READ_MEMORY.subarray(0, size));
          return true;
        },
      },
    };
    if (!isSecure) return net.connect(options, opened);
    const socket = tls.connect({ ...options, ...secureOptions }, opened);
    // Makes the next handshake shorter. Node reports a session only after it has verified the
    // certificate.
    socket.on("session", (session) => {
      secureOptions.session = session;
    });
    // The session may be to blame for a failed handshake.
    socket.on("error", () => delete secureOptions.session);
    return socket;
  };
}
