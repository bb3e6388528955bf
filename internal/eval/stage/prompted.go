package stage

import (
	"encoding/json"
	"strings"
)

// prompted finds the sample that a session answers.
type prompted struct {
	byID map[string]*Sample
	// byFirst are the samples with the same first prompt.
	byFirst map[string][]withPrompts
}

type withPrompts struct {
	sample  *Sample
	prompts []string
}

func newPrompted(samples []Sample) *prompted {
	p := &prompted{byID: make(map[string]*Sample, len(samples)), byFirst: make(map[string][]withPrompts, len(samples))}
	for i := range samples {
		s := &samples[i]
		p.byID[s.ID] = s
		if all := promptsOf(s); all[0] != "" {
			p.byFirst[all[0]] = append(p.byFirst[all[0]], withPrompts{s, all})
		}
	}
	return p
}

// promptsOf are what the user says in each turn of a sample; there is at least one.
func promptsOf(s *Sample) (all []string) {
	for i := range s.Turns {
		all = append(all, strings.TrimSpace(s.Turns[i].Question))
	}
	if s.Check != nil && s.Check.Turns > 0 && len(all) == 0 {
		var turns [][]struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		_ = json.Unmarshal(s.Messages, &turns) // else the question is all that is known
		for _, messages := range turns {
			said := ""
			for _, m := range messages {
				if m.Role == "user" && json.Unmarshal(m.Content, &said) != nil {
					said = ""
				}
			}
			all = append(all, strings.TrimSpace(said))
		}
	}
	if len(all) == 0 {
		all = []string{strings.TrimSpace(s.Question)}
	}
	return all
}

// of is the sample that a session answers, nil for none: the one with the id of its task or of the
// session, else the one that has the most of its prompts in common with it from the first on, and of
// several such the one whose number of prompts is nearest.
func (p *prompted) of(begin *step, steps []step) *Sample {
	for _, id := range []string{begin.Task, begin.Session} {
		if s := p.byID[id]; id != "" && (s != nil || id == begin.Task) {
			return s
		}
	}
	var said []string
	for i := range steps {
		if steps[i].Type == "user" {
			said = append(said, strings.TrimSpace(steps[i].Text))
		}
	}
	if len(said) == 0 {
		return nil
	}
	var best *Sample
	common, distance := 0, 0
	for _, w := range p.byFirst[said[0]] {
		n := 0
		for n < min(len(said), len(w.prompts)) && said[n] == w.prompts[n] {
			n++
		}
		far := max(len(said), len(w.prompts)) - min(len(said), len(w.prompts))
		if best == nil || n > common || n == common && far < distance {
			best, common, distance = w.sample, n, far
		}
	}
	return best
}
