#!/usr/bin/env bash
# k8s.io/apimachinery v0.36.2, labels: in a query `a in ()` and `a in (b,)` are valid, and the empty place is the empty
# value: the first selects what has `a: ""`, and nothing else. The same as `matchExpressions` (In, no values) is an error.
# `a>1` compares integers, and is an operator that the `matchExpressions` of a Placement do not have.
source "$(dirname "$0")/lib.sh"
with_go k8s.io/apimachinery@v0.36.2 <<'GO'
package main

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func main() {
	for _, text := range []string{"a in ()", "a in (b,)", "a in (,)", "a notin ()", "a>1", "a=b,"} {
		selector, err := labels.Parse(text)
		if err != nil {
			fmt.Println(text, "->", err)
			continue
		}
		fmt.Print(text, " -> ", selector, " selects")
		for _, set := range []labels.Set{{}, {"a": ""}, {"a": "b"}, {"a": "2"}} {
			fmt.Print(" ", selector.Matches(set))
		}
		fmt.Println()
	}
	_, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In"}},
	})
	fmt.Println("matchExpressions In without values ->", err)
}
GO
expect "$("$program")" <<'SEEN'
a in () -> a in () selects false true false false
a in (b,) -> a in (,b) selects false true true false
a in (,) -> a in () selects false true false false
a notin () -> a notin () selects true false true true
a>1 -> a>1 selects false false false true
a=b, -> found '', expected: identifier after ','
matchExpressions In without values -> values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty
SEEN
