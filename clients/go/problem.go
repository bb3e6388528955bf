package callyard

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"
)

// ProblemError is an error response: a response with status 400 or higher, or an HTML page of a
// proxy, such as its sign-in page.
type ProblemError struct {
	// Problem is the problem document of the front door. If the response comes from a
	// proxy, only the title and the status are set and, for a page, the detail.
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
		where := "whole document"
		if fault.Pointer != nil && *fault.Pointer != "" {
			where = *fault.Pointer
		} else if fault.Parameter != nil {
			where = *fault.Parameter
		}
		text += fmt.Sprintf(" [%s: %s]", where, fault.Message)
	}
	return text
}

// Check returns a *[ProblemError] if the status of a response is 400 or higher, or if a proxy
// answered with an HTML page, and nil otherwise. body is the whole body of the response:
//
//	answer, err := client.CallToolWithResponse(ctx, "demo", "echo", nil, body)
//	if err == nil {
//		err = callyard.Check(answer.HTTPResponse, answer.Body)
//	}
func Check(res *http.Response, body []byte) error {
	page := isForeignPage(res)
	if res.StatusCode < http.StatusBadRequest && !page {
		return nil
	}
	e := &ProblemError{Header: res.Header, Body: body}
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if media != "application/problem+json" || json.Unmarshal(body, &e.Problem) != nil {
		e.Problem = Problem{Title: http.StatusText(res.StatusCode)}
		if page {
			e.Problem.Detail = foreignPage(res)
		}
	}
	e.Problem.Status = int64(res.StatusCode)
	e.RetryAfter, _ = retryAfter(res.Header)
	return e
}

// isForeignPage reports whether a response without an error status is an HTML page that no operation
// returns. The only operation that returns one is GET /evaluations/{id}/page.
func isForeignPage(res *http.Response) bool {
	if res.StatusCode >= http.StatusBadRequest {
		return false
	}
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if media != "text/html" && media != "application/xhtml+xml" {
		return false
	}
	if res.Request == nil {
		return true
	}
	path := res.Request.URL.EscapedPath()
	return !strings.Contains(path, "/evaluations/") || !strings.HasSuffix(path, "/page")
}

func foreignPage(res *http.Response) string {
	from := "A proxy"
	if res.Request != nil {
		from = res.Request.URL.Scheme + "://" + res.Request.URL.Host
	}
	return fmt.Sprintf("%s answered with status %d and an HTML page, such as the sign-in page of a proxy, and not as a front door does. Connect to the front door itself, or sign in to the proxy.", from, res.StatusCode)
}
