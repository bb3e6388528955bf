package rest

import (
	"github.com/callyard/callyard/internal/problem"
	"github.com/callyard/callyard/pkg/schema"
)

// Kinds of failure that exist only in HTTP.
const (
	kindMediaType   = problem.KindMediaType
	kindMethod      = problem.KindMethod
	kindBodyTimeout = problem.KindBodyTimeout
)

// kind is how a kind of error looks over HTTP.
type kind = problem.Row

func kindTable() map[schema.Kind]*kind {
	table := make(map[schema.Kind]*kind)
	for _, k := range problem.Rows() {
		table[k.Kind] = &k
	}
	return table
}

// kindOf returns the row of a kind; one that is not in the table is a fault of
// ours.
func (a *API) kindOf(k schema.Kind) *kind {
	if row := a.kinds[k]; row != nil {
		return row
	}
	return a.kinds[schema.KindInternal]
}
