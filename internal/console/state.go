package console

import (
	"context"
	"net/http"
	"strings"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	statePath  = Root + "/state"
	exportPath = statePath + "/export"
)

type statePage struct {
	File, ETag, Token string
	Changes           *callyard.StateChanges // nil if nothing was compared
	Refusal           string
	Faults            []schema.Fault
}

// state serves the page that exports and imports the state that operators have set up.
func (c *Console) state(w http.ResponseWriter, r *http.Request, v Visit) error {
	if _, err := c.exported(r.Context(), v); err != nil {
		return c.orKey(w, r, err)
	}
	return c.showState(w, v, http.StatusOK, &statePage{})
}

func (c *Console) exported(ctx context.Context, v Visit) (response, error) {
	return c.ask(ctx, v, with0(api.GetState))
}

func (c *Console) showState(w http.ResponseWriter, v Visit, status int, page *statePage) error {
	page.Token = v.Token(statePath)
	return c.render(w, v, status, "state", view{Title: "State", Here: statePath, Page: page})
}

// exportState downloads the state.
func (c *Console) exportState(w http.ResponseWriter, r *http.Request, v Visit) error {
	a, err := c.exported(r.Context(), v)
	if err != nil {
		return c.orKey(w, r, err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", `attachment; filename="callyard-state.json"`)
	_, _ = w.Write(pretty(a.body)) // the client disconnected; there is no one to report the error to
	return nil
}

// importState compares a file with the state, or applies the state that was compared.
func (c *Console) importState(w http.ResponseWriter, r *http.Request, v Visit) error {
	page := statePage{File: strings.TrimSpace(r.PostForm.Get("file")), ETag: r.PostForm.Get("etag")}
	apply := r.PostForm.Get("do") == "import"
	dry := !apply
	params := callyard.PutStateParams{DryRun: &dry}
	if apply {
		params.IfMatch = &page.ETag
	}
	changes, err := get[callyard.StateChanges](r.Context(), c, v, func(ctx context.Context, client *callyard.ClientWithResponses) (*http.Response, error) {
		return client.PutStateWithBody(ctx, &params, "application/json", strings.NewReader(page.File))
	})
	if err != nil {
		page.Refusal, page.Faults = problem.Of(err).Detail, schema.AsError(err).Faults
		return c.showState(w, v, problem.Of(err).Status, &page)
	}
	if apply {
		c.acted(v, "import a state", "changes", len(changes.Changes))
	}
	page.Changes, page.ETag = &changes, changes.Etag
	return c.showState(w, v, http.StatusOK, &page)
}
