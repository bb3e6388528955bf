// Package calculator evaluates arithmetic expressions for a model: the built-in server
// "calculator".
//
// The language is the arithmetic part of Python's: numbers, lists, the operators
// + - * / // % **, comparisons, and, or, not, and calls of the functions that [Names] lists, with
// its constants. Integers are exact; /, // and % behave as in Python. Names and results are those
// of toolregistry-hub's calculator.
//
// An expression can reach nothing but these functions, and each evaluation ends within its limits:
// [MaxBytes], [MaxTokens], [MaxDepth], [MaxBits] and a budget of work. Beyond a limit the result is
// an error that names the limit.
//
// Complex numbers, strings other than arguments, assignment, attributes, indexing and the bit
// operators are refused: ^ is nearly always meant as a power.
package calculator
