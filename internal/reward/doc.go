// Package reward computes the reward of an answer with tool calls, or of an episode, for
// programs that train a model.
//
// It owns the terms of a reward ([Terms]), their inputs ([Item]) and their weighted sum
// ([Scorer.Score]). The terms for the selection of tools and for the format of an answer are those
// of package eval.
//
// A reward depends only on the item, the preset and the weights. Terms are always added in the same
// order. An item without a valid result has no reward: it is masked, and its reward is not 0.
//
// The package runs no tools and calls no models.
package reward
