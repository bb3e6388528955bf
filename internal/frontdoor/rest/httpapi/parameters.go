package httpapi

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// parameters are the query parameters of an operation. The server validates requests against the
// same schemas that the document contains, so the two cannot differ.
type parameters struct {
	names  []string
	schema map[string]*huma.Schema
}

func queryParameters(op *huma.Operation) parameters {
	p := parameters{schema: make(map[string]*huma.Schema)}
	for _, one := range op.Parameters {
		if one.In == "query" {
			p.names = append(p.names, one.Name)
			p.schema[one.Name] = one.Schema
		}
	}
	return p
}

// read returns the query parameters of a request. It refuses those that do not match the document
// and unknown ones.
func (p parameters) read(u *url.URL) (url.Values, error) {
	if u.RawQuery == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The query cannot be parsed: percent-encode its special characters.")
	}
	for name, given := range values {
		s, known := p.schema[name]
		switch {
		case !known && len(p.names) == 0:
			return nil, BadParameter(problem.Printable(name, 64), "is unknown; this path has no parameters")
		case !known:
			return nil, BadParameter(problem.Printable(name, 64), "is unknown; the parameters of this path are "+strings.Join(p.names, ", "))
		case s.Type == huma.TypeArray:
			// A list is sent as several parameters, or as one with commas.
			values[name] = strings.Split(strings.Join(given, ","), ",")
			s = s.Items
		case len(given) > 1:
			return nil, BadParameter(name, fmt.Sprintf("appears %d times; send it once", len(given)))
		}
		for _, text := range values[name] {
			if want := expectedValue(s, text); want != "" {
				return nil, BadParameter(name, "must be "+want)
			}
		}
	}
	return values, nil
}

// expectedValue returns what a value must be to match the schema of a parameter, or "" if it matches.
func expectedValue(s *huma.Schema, text string) string {
	switch {
	case len(s.Enum) > 0:
		if !slices.Contains(s.Enum, any(text)) {
			return "one of " + joinAny(s.Enum)
		}
	case s.Type == huma.TypeBoolean:
		if text != "true" && text != "false" {
			return "true or false"
		}
	case s.Type == huma.TypeInteger:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || s.Minimum != nil && float64(n) < *s.Minimum || s.Maximum != nil && float64(n) > *s.Maximum {
			return "a whole number" + bounds(s)
		}
	case s.Format == "date-time":
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			return "a time like 2026-01-02T15:04:05Z"
		}
	case s.MaxLength != nil:
		if utf8.RuneCountInString(text) > *s.MaxLength {
			return fmt.Sprintf("at most %d characters", *s.MaxLength)
		}
	}
	return ""
}

func bounds(s *huma.Schema) string {
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf(" between %.0f and %.0f", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		return fmt.Sprintf(" of at least %.0f", *s.Minimum)
	}
	return ""
}

func joinAny(list []any) string {
	words := make([]string, len(list))
	for i, one := range list {
		words[i] = fmt.Sprint(one)
	}
	return strings.Join(words, ", ")
}

// parameterError is the error for a parameter of a request. It includes the name.
type parameterError struct {
	refusal       *schema.Error
	name, message string
}

// Error returns the message of the refusal.
func (e *parameterError) Error() string { return e.refusal.Error() }

// Unwrap returns the refusal without the name of the parameter.
func (e *parameterError) Unwrap() error { return e.refusal }

// BadParameter returns the error for a query parameter. message describes the fault and follows the
// name.
func BadParameter(name, message string) error {
	return &parameterError{schema.Errorf(schema.KindInvalidRequest, "Query parameter %s %s.", name, message), name, message}
}

// parameterFaults returns the list of faults of a problem about a parameter.
func parameterFaults(err error) []problem.Fault {
	var p *parameterError
	if !errors.As(err, &p) {
		return nil
	}
	return []problem.Fault{{Parameter: p.name, Message: p.message}}
}

// The default and the maximum size of a page of calls or batches.
const PageLimit, MaxPageLimit = 100, 1000

// Number returns an integer parameter, or otherwise if it is absent.
func Number(values url.Values, name string, otherwise int) int {
	if n, err := strconv.ParseInt(values.Get(name), 10, 64); err == nil {
		return int(min(n, math.MaxInt))
	}
	return otherwise
}

// Time returns a time parameter, or the zero time if it is absent. Invalid values were refused
// before.
func Time(values url.Values, name string) time.Time {
	at, err := time.Parse(time.RFC3339, values.Get(name))
	if err != nil {
		return time.Time{}
	}
	return at
}

// checked returns a handler that validates the parameters of the operation and stores them in the
// exchange.
func checked(op *huma.Operation, h Handler) Handler {
	takes := queryParameters(op)
	return func(x *Exchange, r *http.Request) (err error) {
		if x.Query, err = takes.read(r.URL); err != nil {
			return err
		}
		return h(x, r)
	}
}

// checkParameters also validates the parameters of a Huma operation: Huma treats empty parameters
// as absent, and accepts other words than true and false.
func (d *Document) checkParameters(ctx huma.Context, next func(huma.Context)) {
	u := ctx.URL()
	if _, err := queryParameters(ctx.Operation()).read(&u); err != nil {
		p := d.problems.Of(err)
		ctx.SetHeader("Content-Type", problem.MediaType)
		ctx.SetStatus(p.Status)
		_, _ = ctx.BodyWriter().Write(p.Encode()) // the server detects a disconnected client
		return
	}
	next(ctx)
}
