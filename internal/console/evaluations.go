package console

import (
	"bytes"
	"context"
	"net/http"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/eval/runs"
)

const (
	evaluationsPath = Root + "/evaluations"
	reportPath      = evaluationsPath + "/report"
	// reportPolicy is that of a report: it has a style of its own, and nothing in it may run, load,
	// send or open anything.
	reportPolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
)

// evaluationPages are the pages of runs of evaluations.
type evaluationPages struct{ *Console }

type evaluationsPage struct {
	Dir  string
	Runs []runs.Run
	All  int
}

// known returns an error unless the front door knows the key of the person. Pages that ask the
// front door for nothing else are behind it.
func (c *Console) known(ctx context.Context, v Visit) error {
	_, err := cached(c.cache, v, "version", func() (response, error) {
		return c.ask(ctx, v, func(ctx context.Context, client *callyard.ClientWithResponses) (*http.Response, error) {
			return client.GetVersion(ctx)
		})
	})
	return err
}

// list lists the runs of evaluations.
func (c evaluationPages) list(w http.ResponseWriter, r *http.Request, v Visit) error {
	if err := c.known(r.Context(), v); err != nil {
		return c.orKey(w, r, err)
	}
	page := evaluationsPage{Dir: c.o.Evaluations.Dir()}
	var err error
	if page.Runs, page.All, err = c.o.Evaluations.List(); err != nil {
		return err
	}
	return c.render(w, v, http.StatusOK, "evaluations", view{Title: "Evaluations", Here: evaluationsPath, Page: page})
}

// report answers with the page of a run, in a sandbox.
func (c evaluationPages) report(w http.ResponseWriter, r *http.Request, v Visit) error {
	if err := c.known(r.Context(), v); err != nil {
		return c.orKey(w, r, err)
	}
	var page bytes.Buffer
	if err := c.o.Evaluations.Write(&page, r.URL.Query().Get("run")); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", reportPolicy)
	_, _ = w.Write(page.Bytes()) // the browser went away; nobody is left to be told
	return nil
}
