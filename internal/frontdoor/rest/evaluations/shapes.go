package evaluations

import (
	"time"

	"github.com/callyard/callyard/internal/frontdoor/rest/openapi"
)

// EvaluationList is the answer to GET /evaluations.
type EvaluationList struct {
	Evaluations []Evaluation `json:"evaluations" nullable:"false" doc:"The newest first, at most 500."`
	Total       int          `json:"total" doc:"The number of all runs in the folder."`
}

// Evaluation summarizes a run of callyard eval in a list.
type Evaluation struct {
	ID     string    `json:"id" doc:"The name of the run, which is that of its folder." example:"2026-01-02-qwen3"`
	At     time.Time `json:"at" doc:"When the report was written or, for a run without a report, when its files were written."`
	Scored bool      `json:"scored" doc:"Whether there is a report. If false, fault has the reason, and there are no scores."`
	Fault  string    `json:"fault,omitempty" doc:"The reason that there is no report."`
	Data   string    `json:"data,omitempty" doc:"The name of the data set." example:"jsonl:questions.jsonl"`

	Samples int `json:"samples,omitempty" doc:"The number of scored samples."`
	Answers int `json:"answers,omitempty" doc:"The number of scored answers."`
	Trials  int `json:"trials,omitempty" doc:"The maximum number of answers to one sample."`

	F1       *EvaluationEstimate `json:"f1,omitempty" doc:"The mean over the samples, at the extraction level published."`
	Accuracy *EvaluationEstimate `json:"accuracy,omitempty" doc:"The mean over the samples, at the extraction level published."`
	Reward   *EvaluationEstimate `json:"reward,omitempty" doc:"The mean of the reward with all its terms."`
}

// EvaluationEstimate is a mean with its interval.
type EvaluationEstimate struct {
	Mean float64 `json:"mean" doc:"The mean."`
	Low  float64 `json:"low" doc:"The lower end of the confidence interval."`
	High float64 `json:"high" doc:"The upper end of the confidence interval."`
}

// EvaluationReport is the answer to GET /evaluations/{id}: the report.json of the run, with its
// name.
type EvaluationReport struct {
	ID            string   `json:"id" doc:"The name of the run, which is that of its folder." example:"2026-01-02-qwen3"`
	Inputs        string   `json:"inputs" doc:"The digest of all inputs of the report."`
	Version       string   `json:"version" doc:"The version of the program that wrote it."`
	Data          string   `json:"data,omitempty" doc:"The name of the data set."`
	SamplesDigest string   `json:"samples_digest" doc:"The digest of the samples."`
	Samples       int      `json:"samples" doc:"The number of scored samples."`
	Answers       int      `json:"answers" doc:"The number of scored answers."`
	Trials        int      `json:"trials" doc:"The maximum number of answers to one sample."`
	Unanswered    int      `json:"unanswered" doc:"Samples without an answer that count as wrong."`
	Skipped       []string `json:"skipped,omitempty" nullable:"false" doc:"Samples without an answer that are not counted."`

	Settings openapi.AnyObject `json:"settings" doc:"The settings of the statistics."`
	Scoring  openapi.AnyObject `json:"scoring" doc:"The settings of the scores, with the constants of the reward."`
	Rules    []string          `json:"rules" nullable:"false" doc:"A short description of the scoring rules."`

	Levels   []EvaluationLevel    `json:"levels" nullable:"false" doc:"The scores at each extraction level: strict, published and lenient."`
	Rewards  []EvaluationReward   `json:"rewards" nullable:"false" doc:"The reward with all its terms, and each term alone."`
	Similar  *EvaluationEstimate  `json:"accuracy_with_similar,omitempty" doc:"The accuracy if tools that the data set calls similar are accepted."`
	Check    *EvaluationCheck     `json:"check,omitempty" doc:"The verdict of the data set's own checker."`
	Executed *EvaluationExecution `json:"executed,omitempty" doc:"The outcomes of the calls in the answers, if they were run."`
	Pass     []EvaluationPass     `json:"pass,omitempty" nullable:"false" doc:"The accuracy over several trials."`
	Turns    []EvaluationTurn     `json:"turns,omitempty" nullable:"false" doc:"The turns of conversations whose calls are expected turn by turn."`
}

// EvaluationLevel is the result for one level of extraction.
type EvaluationLevel struct {
	Level      string               `json:"level" enum:"strict,published,lenient" doc:"The extraction level: the calls that count, from only well-formed ones to all that are found in the text."`
	Micro      EvaluationMetrics    `json:"micro" doc:"The means over all samples."`
	Macro      EvaluationMetrics    `json:"macro" doc:"The means of the categories, averaged."`
	Types      map[string]int       `json:"types" doc:"The number of answers of each type."`
	Categories []EvaluationCategory `json:"categories" nullable:"false" doc:"The scores of each category of samples."`
}

// EvaluationCategory is the result for one category of samples.
type EvaluationCategory struct {
	Name    string            `json:"name" doc:"The name of the category."`
	Samples int               `json:"samples" doc:"The number of samples in the category."`
	Metrics EvaluationMetrics `json:"metrics" doc:"The means over the samples of the category."`
	Types   map[string]int    `json:"types" doc:"The number of answers of each type."`
}

// EvaluationMetrics are means over samples.
type EvaluationMetrics struct {
	Precision EvaluationEstimate `json:"precision" doc:"The mean share of the called tools that are expected."`
	Recall    EvaluationEstimate `json:"recall" doc:"The mean share of the expected tools that are called."`
	F1        EvaluationEstimate `json:"f1" doc:"The mean of the harmonic means of the precision and recall of each sample."`
	Accuracy  EvaluationEstimate `json:"accuracy" doc:"The share of answers that call exactly the expected tools."`
}

// EvaluationReward is the mean of a reward.
type EvaluationReward struct {
	Name string             `json:"name" doc:"The name of the term, or full for the reward with all its terms." example:"full"`
	Mean EvaluationEstimate `json:"mean" doc:"The mean over the samples."`
}

// EvaluationCheck is the result of the data set's own checker.
type EvaluationCheck struct {
	Valid      EvaluationEstimate `json:"valid" doc:"The share of answers that the checker accepts."`
	Categories map[string]float64 `json:"categories" doc:"The share of accepted answers, by category."`
	Errors     map[string]int     `json:"errors" doc:"The number of rejected answers, by their first fault."`
}

// EvaluationExecution summarizes the calls of the answers that were executed.
type EvaluationExecution struct {
	Answers int                 `json:"answers" doc:"The number of answers whose calls were run."`
	Masked  int                 `json:"masked" doc:"Answers without a valid result; no share includes them."`
	Calls   int                 `json:"calls" doc:"The number of calls in these answers."`
	Refused int                 `json:"refused" doc:"Calls that were not run because the sample does not offer the tool."`
	OK      int                 `json:"ok" doc:"Calls without an error."`
	Denied  int                 `json:"denied" doc:"Calls that the policy, a scope or a person denied."`
	Run     *EvaluationEstimate `json:"run,omitempty" doc:"The share of calls without an error."`
	Results *EvaluationEstimate `json:"results,omitempty" doc:"The share of the results of the labelled calls that the calls of the answer have too."`
	State   *EvaluationEstimate `json:"state,omitempty" doc:"The share of answers whose calls lead to the same state as the labelled calls."`
	Why     map[string]int      `json:"masked_because,omitempty" doc:"The number of masked answers by reason."`
}

// EvaluationPass is the accuracy over k trials.
type EvaluationPass struct {
	K          int                `json:"k" doc:"The number of trials."`
	AtLeastOne EvaluationEstimate `json:"pass_at_k" doc:"The share of samples for which at least one of k answers is correct."`
	All        EvaluationEstimate `json:"pass_all_k" doc:"The share of samples for which all of k answers are correct."`
}

// EvaluationTurn is the result for one turn of conversations, at the level published.
type EvaluationTurn struct {
	Turn     int                `json:"turn" doc:"The number of the turn, from 1."`
	Samples  int                `json:"samples" doc:"The number of conversations with this turn."`
	Accuracy EvaluationEstimate `json:"accuracy" doc:"The share of conversations that call exactly the expected tools in this turn."`
	Types    map[string]int     `json:"types" doc:"The number of answers of each type."`
}
