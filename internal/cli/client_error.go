package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/kit/visible"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// exitInterrupted is the exit code that shells expect of a command stopped by ^C.
const exitInterrupted = 130

// exitError ends the process with a code. err is the reason, for people.
type exitError struct {
	code     int
	err      error
	notFound bool // the named object, such as a server, does not exist
	invalid  bool // the body of the request is invalid or too large
}

// Error returns the message for people, which may have several lines.
func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap returns the cause.
func (e *exitError) Unwrap() error { return e.err }

// ExitCode returns the exit code of the process.
func (e *exitError) ExitCode() int { return e.code }

// ended returns an error that ends the process with the code without a message, because everything
// was already reported.
func ended(code int) error { return &exitError{code: code} }

// isNotFound reports whether the error is that a named object does not exist.
func isNotFound(err error) bool {
	e, ok := errors.AsType[*exitError](err)
	return ok && e.notFound
}

// fail returns an error that ends the process with the code.
func fail(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

// refused converts an unsuccessful response into the error for people. With --output json or yaml
// it also writes the problem document to stdout, for programs.
func (c *client) refused(status int, header http.Header, body []byte) error {
	var p callyard.Problem
	if err := json.Unmarshal(body, &p); err != nil || cmp.Or(p.Detail, p.Title) == "" || mediaType(header) != "application/problem+json" {
		return fail(codeOf(status), "%s returned %d %s, which is not an answer of Callyard: check --url.", c.base, status, http.StatusText(status))
	}
	if c.out.structured() {
		if err := c.out.document(body); err != nil {
			return err
		}
	}
	return &exitError{
		code: codeOf(status), err: errors.New(c.problemText(&p, status, header.Get("Retry-After"))),
		notFound: status == http.StatusNotFound, invalid: status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge,
	}
}

// missing returns the error for an object that is not in a list of the front door, as [client.refused]
// does for a request that the front door answers with 404.
func (c *client) missing(format string, args ...any) error {
	p := problem.Of(schema.Errorf(schema.KindNotFound, format, args...))
	return c.refused(p.Status, http.Header{"Content-Type": {problem.MediaType}}, p.Encode())
}

// codeOf returns the exit code for an unsuccessful status: refused, or unable to serve.
func codeOf(status int) int {
	if status >= http.StatusInternalServerError || status < http.StatusBadRequest {
		return exitUnreachable
	}
	return exitRefused
}

// problemText formats a problem for people: the message, each fault on its own line, and the fix.
func (c *client) problemText(p *callyard.Problem, status int, retryAfter string) string {
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimSpace(cmp.Or(p.Detail, p.Title)), "\n") {
		if i > 0 {
			b.WriteString("\n  ") // indent, so that no line of it looks like our output
		}
		b.WriteString(visible.Terminal(strings.TrimRight(line, "\r")))
	}
	for _, f := range p.Errors {
		place := "(whole document)"
		switch {
		case deref(f.Parameter) != "":
			place = "parameter " + *f.Parameter
		case deref(f.Pointer) != "":
			place = *f.Pointer
		}
		fmt.Fprintf(&b, "\n  %s: %s", oneLine(place), oneLine(f.Message))
	}
	if p.RPC != nil {
		fmt.Fprintf(&b, "\n  the server's own error %d: %s", p.RPC.Code, oneLine(p.RPC.Message))
	}
	seconds, err := strconv.Atoi(retryAfter)
	switch {
	case err == nil && p.Retryable:
		fmt.Fprintf(&b, "\nYou can safely retry in %d s.", seconds)
	case err == nil:
		fmt.Fprintf(&b, "\nRetry in %d s.", seconds)
	case p.Retryable:
		b.WriteString("\nYou can safely retry.")
	}
	if status == http.StatusUnauthorized {
		b.WriteString("\nPass an API key with " + c.keySources + ".")
	}
	if id := deref(p.CallID); id != "" {
		fmt.Fprintf(&b, "\nThe call was %s.", oneLine(id))
	}
	return b.String()
}
