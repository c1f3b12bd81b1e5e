# operations.csv -> operation_list.h: awk -F, -f operations.awk operations.csv
NR > 1 {
    list = list " \\\n    X(" $1 ")"
    if ($2 == "yes" && first == "")
        first = $1
    if ($2 != "yes" && first != "") {
        print "operations.csv: " $1 " follows a collective but is not one" > "/dev/stderr"
        exit 1
    }
}
END {
    print "#define TRACE_OPERATIONS(X)" list
    print "#define TRACE_FIRST_COLLECTIVE OP_" first
}
