package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/clients/go/batchfile"
	"github.com/callyard/callyard/internal/kit/shellwords"
)

// troubleText describes an error that will be retried.
func troubleText(ctx context.Context, c *client, err error) string {
	if refused, ok := errors.AsType[*callyard.ProblemError](err); ok {
		why := fmt.Sprintf("Callyard returned status %d", refused.Problem.Status)
		if detail := refused.Problem.Detail; detail != "" {
			why += ": " + detail
		}
		return why
	}
	return batchFailure(ctx, c, err).Error()
}

// batchFailure returns the error for people for a request without a proper response.
func batchFailure(ctx context.Context, c *client, err error) error {
	switch {
	case errors.Is(err, batchfile.ErrForeign):
		return c.foreign()
	case errors.Is(err, batchfile.ErrIncomplete):
		return fail(exitUnreachable, "%s ended the stream of results before the end of the batch.", c.base)
	}
	return c.unreachable(ctx, err)
}

// batchError returns an error that explains the consequences for the batch and how to continue.
func batchError(ctx context.Context, c *client, o *batchfile.Options, s batchfile.Progress, err error) error {
	var fault *batchfile.Error
	var coded *exitError
	if errors.As(err, &fault) && fault.Fault != batchfile.LinesLost {
		return batchFault(o, fault)
	}
	if errors.As(err, &coded) {
		return err
	}
	var next string
	switch {
	case s.Batch == "":
	case s.Sealed:
		next = fmt.Sprintf("Batch %s continues to run. Repeat the command to continue with its results, or add --cancel to cancel it.", s.Batch)
	case s.Piped:
		next = fmt.Sprintf("Batch %s has %s lines so far. Repeat the command with the same input to send the rest, or add --cancel to cancel it.", s.Batch, number(s.Stored))
	default:
		next = fmt.Sprintf("Batch %s has %s lines so far. Repeat the command to send the rest, or add --cancel to cancel it.", s.Batch, number(s.Stored))
	}
	var code int
	var text string
	var refused *callyard.ProblemError
	switch {
	case ctx.Err() != nil:
		code, text = exitInterrupted, "Interrupted."
	case errors.As(err, &refused):
		status := int(refused.Problem.Status)
		refusal := c.refused(status, refused.Header, refused.Body)
		code, text = exitCode(refusal), refusal.Error()
		if status == http.StatusNotFound && s.Batch != "" {
			next = fmt.Sprintf("The batch was created at %s. If it has been deleted there, its results so far are in %s, and --new starts a new batch.", s.Address, o.Results)
		}
		if batchfile.Passing(refused) && s.Batch != "" {
			text = fmt.Sprintf("Retried for %s without success. %s", max(o.GiveUp, 0), text)
		}
	case fault != nil:
		code, text = exitUnreachable, fault.Error()
	default:
		refusal := batchFailure(ctx, c, err)
		code, text = exitCode(refusal), refusal.Error()
	}
	if next != "" {
		text += "\n" + next
	}
	return &exitError{code: code, err: errors.New(text)}
}

// batchFault returns the error for a fault in the files or the command line, with the flags that
// help.
func batchFault(o *batchfile.Options, e *batchfile.Error) error {
	switch e.Fault {
	case batchfile.InUse:
		return fail(exitUsage, "Another callyard process is writing to %s; wait until it has ended, or use another file with --out.", o.Results)
	case batchfile.NotEmpty:
		return fail(exitUsage, "%s is not empty and belongs to no batch that can be continued. Remove it, use another file with --out, or replace it with --new.", o.Results)
	case batchfile.OtherCalls:
		if e.Batch != "" {
			return fail(exitUsage, "%s has changed since batch %s was created from it. Use another file for its results with --out, or start a new batch with --new.", e.Path, e.Batch)
		}
	case batchfile.OtherOrder:
		return fail(exitUsage, "Batch %s was created with other values of --priority, --expires or --label; omit them to continue it, or start a new batch with --new.", e.Batch)
	case batchfile.BadState:
		return fail(exitUsage, "%w Start a new batch with --new; its calls run again.", e)
	}
	return fail(exitUsage, "%w", e)
}

// reportBatch prints how the batch ended, or that all of it is stored.
func reportBatch(c *client, o *batchfile.Options, r *batchfile.Report) error {
	var err error
	if c.out.structured() {
		err = c.out.document(r.Batch.Raw)
	} else {
		err = c.out.text(batchSummary(c.out, o, r))
	}
	if err != nil {
		return err
	}
	switch c := &r.Batch.Counts; {
	case r.NotTaken > 0:
		return ended(exitToolError)
	case o.UploadOnly:
		return nil
	case c.Failed+c.Expired+c.Canceled+c.Unknown+c.ToolErrors > 0:
		return ended(exitToolError)
	case c.Denied > 0:
		return ended(exitRefused)
	}
	return nil
}

func batchSummary(out screen, o *batchfile.Options, r *batchfile.Report) string {
	var t strings.Builder
	b := r.Batch
	if o.UploadOnly && !b.Ended() {
		fmt.Fprintf(&t, "Batch %s has all %s calls and is running. Repeat the command without --follow=false to wait for the results.\n", oneLine(b.ID), number(b.Total()))
		return t.String()
	}
	reason := ""
	if b.Reason != nil && *b.Reason != "" {
		reason = ": " + oneLine(*b.Reason)
	}
	fmt.Fprintf(&t, "Batch %s, %s%s.\n", oneLine(b.ID), oneLine(string(b.State)), reason)
	c := &b.Counts
	for _, l := range []struct {
		n     int64
		name  string
		paint colour
		more  string
	}{
		{c.Succeeded, "succeeded", green, ""}, {c.ToolErrors, "of those: tool errors", yellow, ""}, {c.Failed, "failed", red, ""}, {c.Denied, "denied", red, ""},
		{c.Expired, "expired", red, ""}, {c.Canceled, "canceled", yellow, ""}, {c.Unknown, "unknown", red, ""}, {c.Waiting, "waiting", plain, ""},
		{int64(r.NotTaken), "not taken", red, "  (lines sent after its end)"},
	} {
		if l.n > 0 {
			fmt.Fprintf(&t, "%13s  %s%s\n", number(uint64(l.n)), out.paint(l.paint, l.name), l.more)
		}
	}
	if !o.UploadOnly {
		noun := "lines"
		if r.Progress.Results.Lines == 1 {
			noun = "line"
		}
		fmt.Fprintf(&t, "Results: %s, %s %s.\n", o.Results, number(r.Progress.Results.Lines), noun)
	}
	if c.Unknown > 0 {
		fmt.Fprintf(&t, "Calls in state unknown were sent and may have run; they were not started again. Check the effects of each, and settle it:\n"+
			"  grep '\"state\":\"unknown\"' %s\n  callyard calls settle CALL_ID --as done|failed|run-again --reason TEXT\n", shellwords.Quote(o.Results))
	}
	return t.String()
}

// number formats n with thousands separators.
func number(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
