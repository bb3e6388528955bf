package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/bodies"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/pkg/schema"
	"github.com/callyard/callyard/pkg/schema/validate"
)

// readBody returns the whole body, at most limit bytes of it. No body is not an
// error; a body that is declared as something other than JSON is.
func (a *API) readBody(x *exchange, r *http.Request, limit int) ([]byte, error) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	if err := checkMediaType(r.Header); err != nil {
		return nil, err
	}
	// Mostly the body is here already, so the deadline is set only once it is due:
	// a timer that never fires costs less than two changes of the connection.
	rc := http.NewResponseController(x.ResponseWriter)
	due := time.AfterFunc(timeFor(limit), func() {
		_ = rc.SetReadDeadline(time.Unix(1, 0)) // a writer without deadlines does without
	})
	body, err := a.bodies.Read(&x.lot, r.Body, r.ContentLength, limit)
	if !due.Stop() && err == nil {
		err = os.ErrDeadlineExceeded // it fired as the body ended, and the connection is of no use now
	}
	if err == nil {
		return body, nil
	}
	switch {
	case errors.Is(err, bodies.ErrTooLong):
		return nil, errBodyTooLarge(limit)
	case errors.Is(err, bodies.ErrFull):
		x.set("Connection", "close")
		return nil, errNoRoom()
	case errors.Is(err, os.ErrDeadlineExceeded):
		x.set("Connection", "close")
		return nil, schema.Errorf(kindBodyTimeout, "The body did not arrive within %s.", timeFor(limit))
	}
	x.set("Connection", "close")
	return nil, schema.Errorf(schema.KindInvalidRequest, "The body could not be read to its end: it is shorter than announced, or the connection broke.")
}

// What all bodies that are being read or worked on may take of memory at once: those
// of up to 64 KiB, and what larger ones take beyond that.
const (
	smallBodies = 32 << 20
	largeBodies = 96 << 20
)

// errNoRoom refuses a body while others take all the memory there is for them.
func errNoRoom() error {
	e := schema.Errorf(schema.KindUnavailable, "The front door holds as many large bodies as it may; nothing was done. Send it again in a moment.")
	e.Retryable, e.RetryAfter = true, time.Second
	return e
}

func errBodyTooLarge(limit int) error {
	return schema.Errorf(schema.KindTooLarge, "The body is over the limit of %d bytes; send less, or ask the operator to raise the limit.", limit)
}

// checkMediaType takes JSON and what is not declared at all.
func checkMediaType(h http.Header) error {
	values := h["Content-Type"]
	if len(values) == 0 || len(values) == 1 && (values[0] == "application/json" || values[0] == "") {
		return nil
	}
	if len(values) == 1 {
		media, _, err := mime.ParseMediaType(values[0])
		if err == nil && (media == "application/json" || strings.HasSuffix(media, "+json")) {
			return nil
		}
	}
	return schema.Errorf(kindMediaType, "The body must be JSON: send Content-Type: application/json. curl --json 'BODY' does, curl -d does not.")
}

// object reads body as one strict JSON object and returns each member as the
// bytes that came. Names count exactly as they are written; where any are known,
// others are refused.
func object(body []byte, limit, depth int, known ...string) (map[string]json.RawMessage, error) {
	with := ""
	if len(known) > 0 {
		with = " with " + strings.Join(known, ", ")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The body is empty; send a JSON object%s.", with)
	}
	if err := validate.Value(body, limit, depth); err != nil {
		return nil, err
	}
	members := make(map[string]json.RawMessage, len(known))
	if !rawjson.Members(body, func(name string, value []byte) { members[name] = value }) {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The body is not a JSON object; send a JSON object%s.", with)
	}
	if len(known) == 0 {
		return members, nil
	}
	var faults []schema.Fault
	for name := range members {
		if !contains(known, name) {
			faults = append(faults, schema.Fault{Pointer: pointer(name), Message: "unknown member" + meant(known, name)})
		}
	}
	if len(faults) == 0 {
		return members, nil
	}
	sortFaults(faults)
	e := schema.Errorf(schema.KindInvalidRequest, "The body has members that are not known here, such as %s; it takes %s.", faults[0].Pointer, strings.Join(known, ", "))
	e.Faults = faults
	return nil, e
}

func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}

// meant names the member that differs in case only.
func meant(known []string, name string) string {
	for _, k := range known {
		if strings.EqualFold(k, name) {
			return "; did you mean " + k + "?"
		}
	}
	return ""
}

// pointer is the JSON pointer of a member of the body.
func pointer(name string) string {
	name = printable(name, 128)
	return "/" + strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// member decodes one member into v. want says in words what it has to be.
func member(members map[string]json.RawMessage, name string, required bool, want string, v any) error {
	raw, ok := members[name]
	if !ok && !required {
		return nil
	}
	if ok && string(raw) != "null" && json.Unmarshal(raw, v) == nil {
		return nil
	}
	if ok {
		return badMember(name, "%s", want)
	}
	e := schema.Errorf(schema.KindInvalidRequest, "The member %s is missing; it must be %s.", name, want)
	e.Faults = []schema.Fault{{Pointer: pointer(name), Message: "is missing"}}
	return e
}

// badMember refuses a member of a body that was read. want says what it has to be.
func badMember(name, want string, args ...any) error {
	want = fmt.Sprintf(want, args...)
	e := schema.Errorf(schema.KindInvalidRequest, "The member %s must be %s.", name, want)
	e.Faults = []schema.Fault{{Pointer: pointer(name), Message: "must be " + want}}
	return e
}

// timeout reads a number of milliseconds; empty means the default of the server.
func (a *API) timeout(text, name string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 1 || ms > a.limits.MaxTimeout.Milliseconds() {
		return 0, schema.Errorf(schema.KindInvalidRequest, "%s must be a whole number of milliseconds between 1 and %d.", name, a.limits.MaxTimeout.Milliseconds())
	}
	return time.Duration(ms) * time.Millisecond, nil
}
