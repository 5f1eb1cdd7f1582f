/** Which key a person is asked about: a function of the report id alone, checkable by the server. */

import { ascii, hex, hmac, joined, sha256, u32 } from "./bytes.js";
import { StudyRefused, require } from "./refusals.js";

/** 16 bytes that stand for a credential within one study. */
export function reportId(terms, credential, hash = sha256) {
  return hash(joined(ascii("sabun report id\0"), terms.shortId, credential)).slice(0, 16);
}

/** The key a report id is asked about: exactly uniform over the keys, by rejection. */
export function assignedIndex(terms, identity, seed = new Uint8Array(0), hash = sha256) {
  const keys = BigInt(terms.keys.length);
  const limit = ((1n << 64n) / keys) * keys;
  const key = joined(ascii("sabun index\0"), seed);
  for (let counter = 0; ; counter += 1) {
    const drawn = new DataView(hmac(key, joined(terms.shortId, identity, u32(counter)), hash).buffer).getBigUint64(0);
    if (drawn < limit) return Number(drawn % keys);
  }
}

/**
 * Makes sure that the revealed seed is the one the study committed to.
 *
 * @throws {StudyRefused} It is not.
 */
export function checkSeed(terms, seed, hash = sha256) {
  require(seed instanceof Uint8Array, "seed", "a Uint8Array", typeof seed);
  if (terms.indexCommitment === null) {
    if (seed.length > 0) throw new StudyRefused("seed must be left out; this study has no index_commitment.");
  } else if (hex(hash(seed)) !== terms.indexCommitment) {
    throw new StudyRefused("seed must be the one this study committed to; it is not. Take part only once it is revealed.");
  }
}

/** The credential of an enrolment, of a number each side drew before it knew the other's. */
export function credentialOf(terms, secret, nonce, hash = sha256) {
  return hash(joined(ascii("sabun credential\0"), terms.shortId, secret, nonce));
}
