package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/console/form"
	"github.com/callyard/callyard/internal/kit/plainjson"
	"github.com/callyard/callyard/internal/kit/rawjson"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// tryView is the part of a tool's page that calls the tool.
type tryView struct {
	Token     string
	Once      string // unique per page: submissions of one page are one call
	Form      *form.Form
	Arguments string // sent verbatim
	Faults    []form.Fault
	Notice    string // about the form and the editor
	Refusal   string // the reason why the call did not run
	Details   []schema.Fault
	CallID    string
	Result    *resultView
	Copies    []copyText
}

// waitFor limits the time that a page waits for a call. The call then continues without it.
const waitFor = 8 * time.Second

// copyText is a call as a command or a program.
type copyText struct {
	ID, Label string
	Text      string
}

// start fills in the defaults of the schema.
func (t *tryView) start(input json.RawMessage) {
	t.Form = form.New(input, nil)
	document, _ := t.Form.JSON()
	t.Arguments = string(document)
}

// tryTool handles the form and the editor of a tool's page. It fills one from the other, or calls
// the tool with the text of the editor.
func (c toolPages) tryTool(w http.ResponseWriter, r *http.Request, v Visit) error {
	f := r.PostForm
	if r.Header.Get("X-Callyard-Part") == "arguments" { // the script requests the JSON of the form
		return c.composeOnly(w, r, v)
	}
	page, err := c.viewTool(r.Context(), v, f.Get("server"), f.Get("tool"))
	if err != nil {
		return err
	}
	// Browsers end the lines of a text with CR LF. No JSON string contains a raw one.
	page.Try.Arguments = strings.ReplaceAll(f.Get("arguments"), "\r\n", "\n")
	act, place, _ := strings.Cut(f.Get("do"), ":")
	values := valuesOf(f)
	status := http.StatusOK
	switch act {
	case "grow", "shrink":
		n, _ := strconv.Atoi(values[place+".n"])
		n += map[string]int{"grow": 1, "shrink": -1}[act]
		values[place+".n"] = strconv.Itoa(max(n, 0))
		page.Try.compose(page.Input, values)
	case "compose":
		page.Try.compose(page.Input, values)
	case "fill":
		status = page.Try.fill(page.Input, values)
	default:
		status = c.run(r.Context(), v, page, values, f.Get("once"))
	}
	return c.renderTool(w, v, status, page)
}

// composeOnly answers the script, which sends a request while the user types. It needs only the
// schema of the tool.
func (c toolPages) composeOnly(w http.ResponseWriter, r *http.Request, v Visit) error {
	f := r.PostForm
	server, name := f.Get("server"), f.Get("tool")
	found, err := cached(c.cache, v, "tool "+server+"/"+name, func() (callyard.ToolItem, error) {
		return c.findTool(r.Context(), v, server, name)
	})
	if err != nil {
		return err
	}
	t := tryView{Arguments: f.Get("arguments")}
	t.compose(rawjson.Get(found.Definition, "inputSchema"), valuesOf(f))
	return sendComposed(w, &t)
}

// valuesOf returns the form controls among the submitted fields.
func valuesOf(f map[string][]string) form.Values {
	values := make(form.Values)
	for name, all := range f {
		if rest, ok := strings.CutPrefix(name, "f."); ok && len(all) == 1 {
			values[rest] = strings.ReplaceAll(all[0], "\r\n", "\n")
		}
	}
	return values
}

// compose writes the values of the form into the editor.
func (t *tryView) compose(input json.RawMessage, values form.Values) {
	t.Form = form.New(input, values)
	var document json.RawMessage
	if document, t.Faults = t.Form.JSON(); t.Form.Root != nil {
		t.Arguments = string(document)
	}
}

// fill reads the text of the editor into the form.
func (t *tryView) fill(input json.RawMessage, before form.Values) int {
	values, whole := form.Fill(input, json.RawMessage(t.Arguments))
	if !json.Valid([]byte(t.Arguments)) {
		t.Form, t.Notice = form.New(input, before), "The editor does not contain valid JSON, so the form stays as it was."
		return http.StatusUnprocessableEntity
	}
	if t.Form = form.New(input, values); !whole {
		t.Notice = "The form cannot show everything that the editor contains. “Run” sends what the editor contains; “Update JSON from form” would drop the rest."
	}
	return http.StatusOK
}

// run calls the tool with exactly the text of the editor, like every other caller: policy,
// approval, limits and records apply. It returns the HTTP status of the page.
func (c toolPages) run(ctx context.Context, v Visit, page *toolView, values form.Values, once string) int {
	t := &page.Try
	if t.Form = form.New(page.Input, values); len(values) == 0 {
		if filled, _ := form.Fill(page.Input, json.RawMessage(t.Arguments)); len(filled) > 0 {
			t.Form = form.New(page.Input, filled)
		}
	}
	if len(t.Arguments) > c.o.ArgumentBytes {
		t.Refusal = "The arguments exceed the limit of " + strconv.Itoa(c.o.ArgumentBytes) + " bytes."
		return http.StatusRequestEntityTooLarge
	}
	began := c.o.Now()
	prefer := fmt.Sprintf("wait=%d", waitFor/time.Second)
	params := callyard.CallToolParams{Prefer: &prefer, IdempotencyKey: onceKey(once, t.Arguments)}
	a, err := c.ask(ctx, v, func(ctx context.Context, client *callyard.ClientWithResponses) (*http.Response, error) {
		return client.CallToolWithBody(ctx, page.Server, page.Name, &params, "application/json", bytes.NewReader([]byte(t.Arguments)))
	})
	took := c.o.Now().Sub(began)
	t.CallID = a.callID
	c.acted(v, "call", "server", page.Server, "tool", page.Name, "call", t.CallID)
	if err != nil {
		d := problem.Of(err)
		t.Refusal, t.Details = d.Detail, schema.AsError(err).Faults
		return d.Status
	}
	t.Result = readResult(a.body, a.status == http.StatusAccepted)
	t.Result.Took = seconds(took.Seconds())
	if t.Result.CallID != "" {
		t.CallID = t.Result.CallID
	}
	return http.StatusOK
}

// onceKey returns an idempotency key of the page and the arguments, so that a double click or a
// reload does not call again. It is nil if the form does not identify its page.
func onceKey(once, arguments string) *string {
	if once == "" || len(once) > 64 || strings.Trim(once, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" { // the format of rand.Text
		return nil
	}
	digest := sha256.Sum256([]byte(arguments))
	key := fmt.Sprintf("%s-%x", once, digest[:8])
	return &key
}

// sendComposed sends the JSON of the form and its faults to the script.
func sendComposed(w http.ResponseWriter, t *tryView) error {
	wrong := []string{} // not nil: the script expects a list
	for _, f := range t.Faults {
		wrong = append(wrong, f.Label+" "+f.Message)
	}
	line, err := plainjson.Marshal(struct {
		Arguments string   `json:"arguments"`
		Faults    []string `json:"faults"`
	}{t.Arguments, wrong})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(line) // the client disconnected; there is no one to report the error to
	return nil
}
