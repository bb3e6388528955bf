package callyard

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"time"
)

// ProblemError is a refusal: an answer whose status is 400 or more.
type ProblemError struct {
	// Problem is what the front door says. An answer that some proxy gave has a
	// title and a status only.
	Problem Problem
	// RetryAfter is how long to wait before the same request, 0 where that is not
	// said.
	RetryAfter time.Duration
	// Header and Body are the answer as it came.
	Header http.Header
	Body   []byte
}

// Error returns the sentence that says what is wrong and how to fix it, with
// the places of single faults.
func (e *ProblemError) Error() string {
	text := e.Problem.Detail
	if text == "" {
		text = fmt.Sprintf("%d %s", e.Problem.Status, e.Problem.Title)
	}
	for _, fault := range e.Problem.Errors {
		where := ""
		if fault.Pointer != nil {
			where = *fault.Pointer
		} else if fault.Parameter != nil {
			where = *fault.Parameter
		}
		text += fmt.Sprintf(" [%s: %s]", where, fault.Message)
	}
	return text
}

// Check returns nil for an answer below 400, else a *[ProblemError]. body is the
// whole body of the answer:
//
//	answer, err := client.CallToolWithResponse(ctx, "demo", "echo", nil, body)
//	if err == nil {
//		err = callyard.Check(answer.HTTPResponse, answer.Body)
//	}
func Check(res *http.Response, body []byte) error {
	if res.StatusCode < http.StatusBadRequest {
		return nil
	}
	e := &ProblemError{Header: res.Header, Body: body}
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if media != "application/problem+json" || json.Unmarshal(body, &e.Problem) != nil {
		e.Problem = Problem{Title: http.StatusText(res.StatusCode)}
	}
	e.Problem.Status = int64(res.StatusCode)
	e.RetryAfter, _ = retryAfter(res.Header)
	return e
}
