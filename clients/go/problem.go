package callyard

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"time"
)

// ProblemError is an error response: a response with status 400 or higher.
type ProblemError struct {
	// Problem is the problem document of the front door. If the response comes from a
	// proxy, only the title and the status are set.
	Problem Problem
	// RetryAfter is the time to wait before repeating the request. 0 means the response
	// did not specify it.
	RetryAfter time.Duration
	// Header and Body are the unchanged header and body of the response.
	Header http.Header
	Body   []byte
}

// Error returns a sentence that describes the problem and its fix, followed by the
// locations of single faults.
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

// Check returns nil if the status of a response is below 400, and a *[ProblemError]
// otherwise. body is the whole body of the response:
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
