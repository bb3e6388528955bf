package bus

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/callyard/callyard/pkg/bus/frame"
	"github.com/callyard/callyard/pkg/schema"
)

// MethodOutcomes asks a worker what became of calls that were sent to it with
// [CallFrame.Keep]. The payload is a [OutcomeQuery] as JSON, the answer one frame for
// each call, in the order asked; see [ReadOutcomes].
const MethodOutcomes = "callyard/outcomes"

// OutcomeQuery is what [MethodOutcomes] carries.
type OutcomeQuery struct {
	CallIDs []schema.CallID `json:"call_ids"`
	// Within is how long ago the calls may have been sent at most; zero says
	// that nobody knows. It is relative, so that clocks need not agree.
	Within time.Duration `json:"within_ns,omitempty"`
	// Brief asks about calls that were sent with [CallFrame.Brief].
	Brief bool `json:"brief,omitempty"`
	// Seqs, where there is one for each call, are the numbers under which the asker
	// sent them, and waits. Of a call that never started that one is refused from now
	// on, should it still come: [Outcome.Refused].
	Seqs []uint64 `json:"seqs,omitempty"`
}

// OutcomeState says how far a call has come at one worker.
type OutcomeState byte

const (
	// OutcomeNever: it did not start at this worker, and if it still comes from
	// anybody but the asker it is refused.
	OutcomeNever OutcomeState = 1
	// OutcomeRunning: it is under way, or waits for a session.
	OutcomeRunning OutcomeState = 2
	// OutcomeEnded: it ended, as Result or Err say.
	OutcomeEnded OutcomeState = 3
	// OutcomeForgotten: it may have been here, but the worker cannot say any more.
	// Nothing is proven.
	OutcomeForgotten OutcomeState = 4
)

// String returns the word for the state.
func (s OutcomeState) String() string {
	switch s {
	case OutcomeNever:
		return "never"
	case OutcomeRunning:
		return "running"
	case OutcomeEnded:
		return "ended"
	case OutcomeForgotten:
		return "forgotten"
	}
	return fmt.Sprintf("OutcomeState(%d)", byte(s))
}

// Outcome is what a worker says became of one call.
type Outcome struct {
	CallID schema.CallID
	State  OutcomeState
	// Result is what the tool answered, with [OutcomeEnded]. Its Body is nil, and Err
	// is of kind [schema.KindResultTooLarge], when the answer was too large to be
	// kept: then only ToolError, Took and the digest in the error's sentence
	// are known.
	Result *schema.Result
	// Err is how the call ended without an answer, with [OutcomeEnded].
	Err *schema.Error
	// Refused says, with [OutcomeNever], that the call will not start as it was sent: it
	// may be sent again, under another number.
	Refused bool
}

// AppendOutcome appends f to dst, which is empty or holds earlier outcomes, and returns the
// extended message.
func AppendOutcome(dst []byte, f *Outcome) []byte {
	var body []byte
	flags := frame.Bit(flagRefused, f.Refused)
	if f.Result != nil {
		body = f.Result.Body
		flags |= flagAnswered | frame.Bit(flagToolError, f.Result.ToolError)
	}
	dst, start := beginFrame(dst)
	dst = frame.AppendString(dst, tagID, f.CallID)
	dst = frame.AppendUint(dst, tagOutcome, uint64(f.State))
	dst = frame.AppendUint(dst, tagFlags, flags)
	if f.Result != nil {
		dst = frame.AppendString(dst, tagWorker, f.Result.Worker)
		dst = frame.AppendDuration(dst, tagTook, f.Result.Took)
	}
	if f.Err != nil {
		e, err := json.Marshal(f.Err)
		if err != nil { // only the data of a JSON-RPC error can be no JSON
			e, _ = json.Marshal(&schema.Error{Kind: f.Err.Kind, CallID: f.Err.CallID, Detail: f.Err.Detail}) // strings only
		}
		dst = frame.AppendString(dst, tagError, string(e))
	}
	return frame.End(dst, start, body)
}

// ReadOutcomes calls each with every outcome of msg, in order. Bodies share the memory
// of msg, which must not be changed afterwards.
func ReadOutcomes(msg []byte, each func(Outcome)) error {
	return frames(msg, func(head, payload []byte) error {
		var f Outcome
		var r schema.Result
		answered := false
		err := frame.Fields(head, func(tag byte, value string) error {
			switch tag {
			case tagID:
				f.CallID = schema.CallID(value)
			case tagOutcome:
				f.State = OutcomeState(min(frame.Uint(value), 255))
			case tagWorker:
				r.Worker = schema.WorkerID(value)
			case tagTook:
				r.Took = frame.Duration(value)
			case tagFlags:
				flags := frame.Uint(value)
				answered, r.ToolError = flags&flagAnswered != 0, flags&flagToolError != 0
				f.Refused = flags&flagRefused != 0
			case tagError:
				f.Err = &schema.Error{}
				if err := json.Unmarshal([]byte(value), f.Err); err != nil {
					return fmt.Errorf("reading the outcome of call %s: %w", f.CallID, err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if answered {
			if r.Body = payload; len(payload) == 0 {
				r.Body = nil
			}
			f.Result = &r
		}
		each(f)
		return nil
	})
}
