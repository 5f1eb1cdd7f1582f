/**
 * The device side of a key-value study: plain JavaScript without dependencies, for browsers, Node and React Native.
 *
 * The same integer tables, the same bytes as the Python device; `wire-vectors.json` holds both to it.
 */

export { assignedIndex, credentialOf, reportId } from "./assignment.js";
export { Harmony, RandomizedResponse } from "./classic.js";
export { Uploader } from "./upload.js";
export { Client } from "./device.js";
export { Diary, indexedDbStorage, memoryStorage, plainStorage } from "./diary.js";
export { decimalText } from "./exact.js";
export { PROTOCOLS, certifiedEpsilon, tableFor } from "./probabilities.js";
export { BudgetRefused, ClientError, DiaryError, ReportError, StudyRefused, UploadError } from "./refusals.js";
export { Terms } from "./terms.js";
export { pack, reportSize, toJson, unpack } from "./wire.js";
