package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// explained says of an error what it means for the batch, and how to go on.
func (r *batchRun) explained(ctx context.Context, err error) error {
	s := r.book.state()
	var goOn string
	switch {
	case s.Batch == "":
		goOn = ""
	case s.Sealed:
		goOn = fmt.Sprintf("Batch %s runs on by itself, and the same command goes on with its results; with --cancel it is canceled.", s.Batch)
	case r.in != nil && r.in.file == nil:
		goOn = fmt.Sprintf("Batch %s has %s lines so far. The same command, given the same lines again, sends the rest; with --cancel it is canceled.", s.Batch, number(s.Lines))
	default:
		goOn = fmt.Sprintf("Batch %s has %s lines so far. The same command sends the rest; with --cancel it is canceled.", s.Batch, number(s.Lines))
	}
	code, text := exitCode(err), err.Error()
	var no *refusal
	switch {
	case ctx.Err() != nil:
		code, text = exitInterrupted, "Interrupted."
	case errors.As(err, &no):
		told := r.c.refused(no.status, no.header, no.body)
		code, text = exitCode(told), told.Error()
		if no.status == http.StatusNotFound && s.Batch != "" {
			goOn = fmt.Sprintf("The batch was made at %s. If it is not kept there any more, its results so far are in %s, and --new begins again.", s.URL, r.o.out)
		}
		if no.passing() && s.Batch != "" {
			text = fmt.Sprintf("Tried for %s without success. %s", r.o.giveUp, text)
		}
	case code == exitUsage: // says how to go on itself
		return err
	}
	if goOn != "" {
		text += "\n" + goOn
	}
	return &exitError{code: code, err: errors.New(text)}
}

// report says how the batch ended, or that all of it is stored.
func (r *batchRun) report(ctx context.Context) error {
	s := r.book.state()
	b := &batchItem{}
	var err error
	for p := r.patience; ; {
		if b, err = r.c.batchAnswer(ctx, "GET", r.path(""), "", nil, 0, ""); err == nil {
			break
		}
		if err := p.again(ctx, err); err != nil {
			return r.explained(ctx, err)
		}
	}
	if r.c.json {
		err = r.c.out.raw(b.raw)
	} else {
		err = r.c.out.text(r.summary(b, &s))
	}
	if err != nil {
		return err
	}
	switch c := &b.Counts; {
	case r.notTaken > 0:
		return statusError(exitToolError)
	case !r.o.follow:
		return nil
	case c.Failed+c.Expired+c.Canceled+c.Unknown+c.ToolErrors > 0:
		return statusError(exitToolError)
	case c.Denied > 0:
		return statusError(exitRefused)
	}
	return nil
}

func (r *batchRun) summary(b *batchItem, s *batchState) string {
	var t strings.Builder
	out := r.c.out
	if !r.o.follow && !b.ended() {
		fmt.Fprintf(&t, "Batch %s has its %s calls and runs. The same command without --follow=false waits for the results.\n", oneLine(b.ID), number(b.total()))
		return t.String()
	}
	reason := ""
	if b.Reason != "" {
		reason = ": " + oneLine(b.Reason)
	}
	fmt.Fprintf(&t, "Batch %s, %s%s.\n", oneLine(b.ID), oneLine(b.State), reason)
	c := &b.Counts
	for _, l := range []struct {
		n     uint64
		name  string
		paint colour
		more  string
	}{
		{c.Succeeded, "succeeded", green, ""}, {c.ToolErrors, "of those: tool errors", yellow, ""}, {c.Failed, "failed", red, ""}, {c.Denied, "denied", red, ""},
		{c.Expired, "expired", red, ""}, {c.Canceled, "canceled", yellow, ""}, {c.Unknown, "unknown", red, ""}, {c.Waiting, "waiting", plain, ""},
		{r.notTaken, "not taken", red, "  (lines that came after its end)"},
	} {
		if l.n > 0 {
			fmt.Fprintf(&t, "%13s  %s%s\n", number(l.n), out.paint(l.paint, l.name), l.more)
		}
	}
	if r.o.follow {
		fmt.Fprintf(&t, "Results: %s, %s lines.\n", r.o.out, number(s.Tally.Lines))
	}
	if c.Unknown > 0 {
		fmt.Fprintf(&t, "Calls that are unknown left, and nobody can tell whether they ran; they were not started again. Look for them, and settle each:\n"+
			"  grep '\"state\":\"unknown\"' %s\n  callyard calls settle CALL_ID --as done|failed|run-again --reason TEXT\n", shellWord(r.o.out))
	}
	return t.String()
}

// shellWord is the text as one word of a shell.
func shellWord(text string) string {
	if text != "" && strings.IndexFunc(text, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("/._-+:,@", c))
	}) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// number is n with commas.
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
