/** Why a device says no; none of these words depends on what a person holds. */

/** Base of every error of the device side; a rule about public facts was broken. */
export class ClientError extends Error {
  constructor(message) {
    super(message);
    this.name = new.target.name;
  }
}

/** The study asks for something this device does not accept. */
export class StudyRefused extends ClientError {}

/** The device's own budget would be exceeded; nothing was drawn, nothing was booked. */
export class BudgetRefused extends ClientError {}

/** The device's book cannot be read or written; nothing was sent. */
export class DiaryError extends ClientError {}

/** Bytes that are no report of this study. */
export class ReportError extends ClientError {}

/** The collector did not take what it was sent; what waits, waits on. */
export class UploadError extends ClientError {
  constructor(message, { code = "unreachable", status = 0 } = {}) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/** Throws `<name> must be <rule>; got <value>. <advice>` unless the condition holds. */
export function require(condition, name, rule, value, advice = "") {
  if (!condition) {
    throw new ClientError(`${name} must be ${rule}; got ${shown(value)}.${advice && ` ${advice}`}`);
  }
}

/** A public value for a message; its type where it cannot be written down. */
export function shown(value) {
  try {
    const text = typeof value === "string" ? JSON.stringify(value) : String(value);
    return text.slice(0, 80);
  } catch {
    return `a ${typeof value} that cannot be shown`;
  }
}
