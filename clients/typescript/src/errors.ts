// The errors for calls without a result.

import type { components } from "./schema.js";

type Schemas = components["schemas"];
type Problem = Schemas["Problem"];

/** The base class of the errors of this package. */
export class CallyardError extends Error {
  override readonly name: string = "CallyardError";
}

/**
 * An error response: a response with status 400 or higher, or an HTML page of a proxy, such as its
 * sign-in page. Its message names each fault with its location.
 */
export class ProblemError extends CallyardError {
  override readonly name = "ProblemError";
  /** The HTTP status. */
  readonly status: number;

  constructor(
    /** The problem document of the front door. If the response comes from a proxy, only title and status are set and, for a page, detail. */
    readonly problem: Problem,
    /** Seconds to wait before repeating the request; undefined if the response did not specify it. */
    readonly retryAfter?: number | undefined,
  ) {
    const faults = (problem.errors ?? []).map((fault) => ` [${fault.pointer || fault.parameter || "whole document"}: ${fault.message}]`);
    super((problem.detail || `${problem.status} ${problem.title}`) + faults.join(""));
    this.status = problem.status;
  }
}

/**
 * The call is held for approval and has not run. Once it is approved,
 * client.wait(error.callId) resolves to its result.
 */
export class HeldError extends CallyardError {
  override readonly name = "HeldError";
  readonly callId: string;
  readonly approvalId: string;
  /** The token with which the caller confirms the call; undefined if an approver must decide. */
  readonly confirmationId: string | undefined;
  /** The page on which approvers decide. */
  readonly approvalUrl: string | undefined;
  readonly expiresAt: Date;

  constructor(readonly request: Schemas["ConfirmationRequest"]) {
    const reasons = (request.reasons ?? [request.risk_description]).map((reason) => reason.replace(/\.$/, "")).join("; ");
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
 * A stored call ended without a result. Its state is failed, denied, expired or canceled,
 * or unknown if it cannot be determined whether the tool ran.
 */
export class CallError extends CallyardError {
  override readonly name = "CallError";
  readonly state: Schemas["CallState"];

  constructor(readonly call: Schemas["Call"]) {
    super(`Call ${call.id} of ${call.server}/${call.tool} ended as ${call.state}${why(call)}`);
    this.state = call.state;
  }
}

/** Returns the person who denied a call and the reason, or the problem, or an empty text. */
function why(call: Schemas["Call"]): string {
  const denial = call.state === "denied" ? call.decisions?.filter(({ kind }) => kind === "deny" || kind === "revoke").at(-1) : undefined;
  if (denial) {
    return ` by ${denial.by}${denial.reason ? `: ${denial.reason}` : ""}`;
  }
  return call.problem ? `: ${call.problem.detail}` : "";
}

/** Parses Retry-After, which is a number of seconds or a date. Returns seconds, or undefined if it is missing. */
export function retryAfter(headers: Headers): number | undefined {
  const said = headers.get("Retry-After")?.trim() ?? "";
  if (/^\d+$/.test(said)) {
    return Number(said);
  }
  const at = said === "" ? NaN : Date.parse(said);
  return Number.isNaN(at) ? undefined : Math.max((at - Date.now()) / 1000, 0);
}

/**
 * Returns the error for a response that is an HTML page although no operation at the URL returns one, or
 * undefined. Only GET /evaluations/{id}/page returns one.
 */
export function foreignPage(response: Response, url: string): ProblemError | undefined {
  const media = response.headers.get("Content-Type")?.split(";")[0]?.trim().toLowerCase();
  if (!response.ok || (media !== "text/html" && media !== "application/xhtml+xml") || /\/evaluations\/[^/]+\/page$/.test(url.split(/[?#]/)[0] ?? "")) {
    return undefined;
  }
  const from = URL.canParse(url) ? new URL(url).origin : "A proxy";
  const detail =
    `${from} answered with status ${response.status} and an HTML page, such as the sign-in page of a proxy, ` +
    "and not as a front door does. Connect to the front door itself, or sign in to the proxy.";
  return new ProblemError({ type: "about:blank", title: response.statusText, status: response.status, detail, error: detail, retryable: false });
}

/** Returns the error for an error response; said is its decoded body or its text. */
export function refusal(said: unknown, response: Response): ProblemError {
  if (typeof said === "string") {
    try {
      said = JSON.parse(said);
    } catch {
      // The error of a proxy is not a problem document.
    }
  }
  const problem: Problem =
    typeof said === "object" && said !== null && "detail" in said
      ? (said as Problem)
      : { type: "about:blank", title: response.statusText, status: response.status, detail: "", error: "", retryable: false };
  return new ProblemError(problem, retryAfter(response.headers));
}
