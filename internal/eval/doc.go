// Package eval scores how well a model selects tools. It reads a model's answer to a question,
// compares the called tools with the expected ones, and computes precision, recall, F1 and accuracy
// for each sample, its failure type and its reward.
//
// It defines samples and responses ([Sample], [Response]), the comparison of names ([Names]), the
// three levels of extraction ([Level]), the metrics ([Selection]) and the rewards ([Reward]).
// Subpackages contain the statistics (stats), the readers of data sets (dataset), the checker of
// BFCL (bfcl), and the files of an evaluation (report).
//
// A score depends only on the sample, the response and the settings. No normalization step makes
// two tools of a sample equal. Every rule is in docs/reference/evaluation.md with its source.
//
// The package does not query models and does not run tools.
package eval
