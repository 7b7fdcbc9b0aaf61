// The models of each vendor, with their prices and the day on which these were looked up.
export { baseUrlFor, VENDOR_ROWS, type VendorRow } from "./vendors.ts";
