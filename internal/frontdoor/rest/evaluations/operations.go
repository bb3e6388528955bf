package evaluations

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/eval/report"
	"github.com/callyard/callyard/internal/eval/runs"
	"github.com/callyard/callyard/internal/eval/stats"
	"github.com/callyard/callyard/internal/frontdoor/rest/httpapi"
	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
	"github.com/callyard/callyard/internal/kit/notnull"
	"github.com/callyard/callyard/pkg/schema"
)

// pagePolicy is the policy of the page of a run: it has an inline style, and may not run scripts,
// load, send or open anything.
const pagePolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"

// handlers are the operations on runs of evaluations.
type handlers struct{ runs *runs.Folder } // nil if there are none

// Register registers the operations on runs of evaluations; folder may be nil.
func Register(d *httpapi.Document, folder *runs.Folder) {
	h := &handlers{folder}
	httpapi.HandleValue(d, opList(), "The runs.", exampleList(), h.list)
	httpapi.HandleValue(d, opGet(), "The report.", nil, h.get)
	d.Handle(opPage(), h.page)
}

// errNoRuns returns the error of a front door without a folder of runs.
func errNoRuns() error {
	return schema.Errorf(schema.KindNotFound, "This front door has no folder of evaluations: set front_door.evaluations to the folder that contains the folders of the runs.")
}

// list serves GET /evaluations.
func (h *handlers) list(*httpapi.Exchange, *http.Request) (EvaluationList, error) {
	list := EvaluationList{Evaluations: []Evaluation{}}
	if h.runs == nil {
		return list, errNoRuns()
	}
	all, total, err := h.runs.List()
	for i := range all {
		list.Evaluations = append(list.Evaluations, evaluationOf(&all[i]))
	}
	list.Total = total
	return list, err
}

func evaluationOf(r *runs.Run) Evaluation {
	e := Evaluation{ID: r.Name, At: r.At.UTC(), Scored: r.Scored, Fault: r.Fault, Data: r.Data, Samples: r.Samples, Answers: r.Answers, Trials: r.Trials}
	if r.Scored {
		e.F1, e.Accuracy, e.Reward = estimateOf(r.F1), estimateOf(r.Accuracy), estimateOf(r.Reward)
	}
	return e
}

func estimateOf(e stats.Estimate) *EvaluationEstimate {
	return &EvaluationEstimate{Mean: e.Mean, Low: e.Low, High: e.High}
}

// get serves GET /evaluations/{id}.
func (h *handlers) get(_ *httpapi.Exchange, r *http.Request) (answer EvaluationReport, err error) {
	if h.runs == nil {
		return answer, errNoRuns()
	}
	id := r.PathValue("id")
	of, err := h.runs.Report(id)
	if err != nil {
		return answer, err
	}
	return shapeOf(id, of)
}

// shapeOf returns the members of a report.json in the form of the schema, which lists all of them.
func shapeOf(id string, of *report.Report) (answer EvaluationReport, err error) {
	text, err := json.Marshal(of)
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err != nil {
		return answer, schema.Errorf(schema.KindInternal, "The report cannot be written as JSON: %w", err)
	}
	answer.ID = id
	// The file may have been written manually.
	answer.Rules, answer.Levels, answer.Rewards = notnull.List(answer.Rules), notnull.List(answer.Levels), notnull.List(answer.Rewards)
	for i := range answer.Levels {
		l := &answer.Levels[i]
		l.Types, l.Categories = notnull.Map(l.Types), notnull.List(l.Categories)
		for j := range l.Categories {
			l.Categories[j].Types = notnull.Map(l.Categories[j].Types)
		}
	}
	for i := range answer.Turns {
		answer.Turns[i].Types = notnull.Map(answer.Turns[i].Types)
	}
	if c := answer.Check; c != nil {
		c.Categories, c.Errors = notnull.Map(c.Categories), notnull.Map(c.Errors)
	}
	return answer, nil
}

// page serves GET /evaluations/{id}/page.
func (h *handlers) page(x *httpapi.Exchange, r *http.Request) error {
	if h.runs == nil {
		return errNoRuns()
	}
	var page bytes.Buffer
	if err := h.runs.Write(&page, r.PathValue("id")); err != nil {
		return err
	}
	x.Set("Content-Security-Policy", pagePolicy)
	x.Send(http.StatusOK, []string{"text/html; charset=utf-8"}, page.Bytes())
	return nil
}

func idParam() *huma.Param {
	return openapi.PathParam("id", "The name of a run, percent-encoded.", "2026-01-02-qwen3")
}

func opList() huma.Operation {
	return openapi.Operation(http.MethodGet, "/evaluations", "list-evaluations", openapi.TagEvaluations, "List evaluations",
		"The runs of `callyard eval` in the folder `front_door.evaluations`, with their scores. They do not belong to a tenant: a tenant that does not see every server may not list them.",
		http.StatusNotFound)
}

func opGet() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/evaluations/{id}", "get-evaluation", openapi.TagEvaluations, "Show an evaluation",
		"The report of a run, as `callyard eval score` wrote it.", http.StatusNotFound)
	return openapi.With(op, idParam())
}

func opPage() huma.Operation {
	op := openapi.Operation(http.MethodGet, "/evaluations/{id}/page", "get-evaluation-page", openapi.TagEvaluations, "Show an evaluation as a page",
		"The page of `callyard eval report`: one HTML file that runs no script and loads nothing.", http.StatusNotFound)
	op.Responses["200"] = &huma.Response{Description: "The page.", Content: map[string]*huma.MediaType{"text/html": {Schema: openapi.Text("HTML.")}}}
	return openapi.With(op, idParam())
}

func exampleList() map[string]any {
	estimate := map[string]any{"mean": 0.73, "low": 0.68, "high": 0.78}
	return map[string]any{"total": 1, "evaluations": []any{map[string]any{
		"id": "2026-01-02-qwen3", "at": "2026-01-02T03:04:05Z", "scored": true, "data": "jsonl:questions.jsonl", "samples": 300, "answers": 300, "trials": 1,
		"f1": estimate, "accuracy": estimate, "reward": map[string]any{"mean": 1.9, "low": 1.7, "high": 2.1},
	}}}
}
