// Package reward computes the reward of an answer with tool calls, or of an episode, for
// programs that train a model.
//
// It owns the terms of a reward ([Terms]), what each needs to know ([Item]) and their weighted
// sum ([Scorer.Score]). The terms for selected tools and for the form of an answer are those of
// package eval.
//
// It promises that a reward depends on the item, the preset and the weights alone, that terms
// are added in one order, and that an item without a valid result has no reward: it is masked
// and never 0.
//
// It refuses to run a tool and to ask a model.
package reward
