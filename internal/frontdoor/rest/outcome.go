package rest

import (
	"bytes"
	"maps"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/callyard/callyard/internal/kit/rawjson"
)

// Every answer to POST /calls, and every answer with 202, has the member outcome, so
// that a program which does not look at the status cannot take a call that is held for
// one that has run. Results by other paths are those of the tool and nothing else.
const (
	memberOutcome    = "outcome"
	outcomeCompleted = "completed" // the tool has answered
	outcomeHeld      = "held"      // the call waits for an approval and has not run
	outcomeAccepted  = "accepted"  // the call is stored and goes on without its caller
)

// Names of the schemas of answers to a call.
const (
	schemaCompleted = "CompletedCall"
	schemaHeld      = "ConfirmationRequest"
	schemaAccepted  = "AcceptedCall"
	schemaAnswer    = "CallAnswer"
)

// sendResult answers with the result of a tool, as the bytes that came; where the
// request asked for an outcome, with that behind them.
func (a *API) sendResult(x *exchange, body []byte) {
	if x.tellOutcome {
		body = withOutcome(body, outcomeCompleted)
	}
	x.send(http.StatusOK, a.fixed.json, body)
}

// withOutcome returns a copy of a JSON object with the member outcome at its end; what
// is no object is returned as it is.
func withOutcome(object []byte, outcome string) []byte {
	return rawjson.With(bytes.TrimSpace(object), memberOutcome, []byte(`"`+outcome+`"`))
}

// finishAnswers puts the shapes of answers to a call into the document. Their
// discriminator tells generated clients which of them an answer is.
func (a *API) finishAnswers() {
	all := a.huma.OpenAPI().Components.Schemas.Map()
	if all[schemaHeld] == nil {
		return
	}
	add := func(name, of, outcome, description string) {
		s := *all[of]
		s.Properties = maps.Clone(s.Properties)
		s.Properties[memberOutcome] = described(words(outcome), "Always "+outcome+"; other answers to a call have another word here.")
		s.Required = append(slices.Clone(s.Required), memberOutcome)
		s.Description = description
		all[name] = &s
	}
	add(schemaCompleted, schemaResult, outcomeCompleted, "The result of the tool, as the MCP server sent it, with outcome behind it. A tool that failed has isError true.")
	add(schemaAccepted, "Call", outcomeAccepted, "A call that is stored and goes on without its caller; GET /calls/{id} tells its state.")
	all[schemaAnswer] = oneOfAnswers("The answer to a call: look at outcome before anything else. With held and accepted the tool has not answered, and with held it has not run.",
		outcomeCompleted, outcomeHeld, outcomeAccepted)
}

func oneOfAnswers(description string, outcomes ...string) *huma.Schema {
	names := map[string]string{outcomeCompleted: schemaCompleted, outcomeHeld: schemaHeld, outcomeAccepted: schemaAccepted}
	s := &huma.Schema{Description: description, Discriminator: &huma.Discriminator{PropertyName: memberOutcome, Mapping: make(map[string]string)}}
	for _, outcome := range outcomes {
		s.OneOf = append(s.OneOf, ref(names[outcome]))
		s.Discriminator.Mapping[outcome] = ref(names[outcome]).Ref
	}
	return s
}
