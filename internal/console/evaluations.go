package console

import (
	"net/http"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

const (
	evaluationsPath = Root + "/evaluations"
	reportPath      = evaluationsPath + "/report"
	// reportPolicy is the Content-Security-Policy of a report. A report has its own inline styles.
	// Nothing in it may run, load, send or open anything.
	reportPolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
)

// evaluationPages serves the pages of evaluation runs.
type evaluationPages struct{ *Console }

type evaluationsPage struct {
	List callyard.EvaluationList
	// Absent is the reason why the front door has no runs to show, or "" if it has a folder of
	// runs.
	Absent string
}

// list lists the evaluation runs.
func (c evaluationPages) list(w http.ResponseWriter, r *http.Request, v Visit) error {
	list, err := get[callyard.EvaluationList](r.Context(), c.Console, v, with0(api.ListEvaluations))
	page := evaluationsPage{List: list}
	switch kind := schema.KindOf(err); {
	case kind == schema.KindNotFound:
		page.Absent = problem.Of(err).Detail
	case err != nil:
		return c.orKey(w, r, err)
	}
	return c.render(w, v, http.StatusOK, "evaluations", view{Title: "Evaluations", Here: evaluationsPath, Page: page})
}

// report writes the report of a run, in a sandbox.
func (c evaluationPages) report(w http.ResponseWriter, r *http.Request, v Visit) error {
	name := r.URL.Query().Get("run")
	if name == "" {
		http.Redirect(w, r, evaluationsPath, http.StatusSeeOther)
		return nil
	}
	page, err := c.ask(r.Context(), v, with(api.GetEvaluationPage, name))
	if err != nil {
		return c.orKey(w, r, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", reportPolicy)
	_, _ = w.Write(page.body) // the client disconnected; there is no one to report the error to
	return nil
}
