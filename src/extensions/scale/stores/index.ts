// What stores outside of the process have in common: the optional packages that speak to them, and
// the passwords in their addresses.
export { passwordsIn } from "./passwords.ts";
export { loadPeer } from "./peer.ts";
