// What is thrown where a call has no result.

import type { components } from "./schema.js";

type Schemas = components["schemas"];
type Problem = Schemas["Problem"];

/** What every error of this package is. */
export class CallyardError extends Error {
  override readonly name: string = "CallyardError";
}

/** A refusal: an answer whose status is 400 or more. */
export class ProblemError extends CallyardError {
  override readonly name = "ProblemError";
  /** The HTTP status. */
  readonly status: number;

  constructor(
    /** What the front door says; of what a proxy says, title and status only. */
    readonly problem: Problem,
    /** Seconds to wait before the same request; undefined where the answer does not say it. */
    readonly retryAfter?: number | undefined,
  ) {
    super(problem.detail || `${problem.status} ${problem.title}`);
    this.status = problem.status;
  }
}

/**
 * The call is held until somebody approves it. It has not run. Once it is approved,
 * client.wait(error.callId) gives its result.
 */
export class HeldError extends CallyardError {
  override readonly name = "HeldError";
  readonly callId: string;
  readonly approvalId: string;
  /** The token with which the caller confirms; undefined where somebody else must approve. */
  readonly confirmationId: string | undefined;
  /** The page on which approvers decide. */
  readonly approvalUrl: string | undefined;
  readonly expiresAt: Date;

  constructor(readonly request: Schemas["ConfirmationRequest"]) {
    const reasons = (request.reasons ?? [request.risk_description]).join("; ");
    const how = request.confirmation_id ? "confirm it" : request.approval_url ? `approve it at ${request.approval_url}` : "somebody else must approve it";
    super(`${request.server_id}/${request.tool_name} is held and has not run: ${reasons}. Call ${request.call_id}: ${how} until ${request.expires_at}`);
    this.callId = request.call_id;
    this.approvalId = request.approval_id;
    this.confirmationId = request.confirmation_id;
    this.approvalUrl = request.approval_url;
    this.expiresAt = new Date(request.expires_at);
  }
}

/**
 * A stored call has ended without a result: failed, denied, expired, canceled, or
 * unknown where nobody can tell whether it ran.
 */
export class CallError extends CallyardError {
  override readonly name = "CallError";
  readonly state: Schemas["CallState"];

  constructor(readonly call: Schemas["Call"]) {
    super(`Call ${call.id} of ${call.server}/${call.tool} ended as ${call.state}${call.problem ? `: ${call.problem.detail}` : ""}`);
    this.state = call.state;
  }
}

/** The seconds that Retry-After asks for; undefined where there is none. It may be a date. */
export function retryAfter(headers: Headers): number | undefined {
  const said = headers.get("Retry-After")?.trim() ?? "";
  if (/^\d+$/.test(said)) {
    return Number(said);
  }
  const at = said === "" ? NaN : Date.parse(said);
  return Number.isNaN(at) ? undefined : Math.max((at - Date.now()) / 1000, 0);
}

/** The error of a refusal, of whose body this was read. */
export function refusal(said: unknown, response: Response): ProblemError {
  if (typeof said === "string") {
    try {
      said = JSON.parse(said);
    } catch {
      // What a proxy says is no problem document.
    }
  }
  const problem: Problem =
    typeof said === "object" && said !== null && "detail" in said
      ? (said as Problem)
      : { type: "about:blank", title: response.statusText, status: response.status, detail: "", error: "", retryable: false };
  return new ProblemError(problem, retryAfter(response.headers));
}
