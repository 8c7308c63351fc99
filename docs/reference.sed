# From the form of the public headers to that of Doxygen, line by line, so that its line numbers stay.
# The first line of a header names the file; a function's comment ends with its contract; docs/reference.md links to
# headers.
1s|^/[*][*] \(gpuhal/[a-z.]*\): |/** @file \1 @brief |
s|^\([ *]*\)Owner: |\1@remark Owner: |
s|\[\([a-z.]*\)\](\.\./hal/include/[^)]*)|\1|g
# An enumeration after the typedef of a number has its values.
/^typedef u*int32_t gpuhal_[a-z_]*;$/{
N
s|^\(typedef [a-z0-9_]* \(.*\);\)\nenum|\1\n/** Values of @ref \2. */ enum|
}
# A comment over several slots is the heading of a group. The hold space says whether one is open.
/^typedef struct gpuhal_\(ops\|plugin\) {$/,/^}/{
/^    \/[*] .* [*]\/$/{
s|^    /[*] \(.*\) [*]/$|/** @name \1 */ /** @{ */|
x
/open/!{
s/.*/open/
x
b
}
x
s|^|/** @} */ |
}
/^}/{
x
/open/{
s/.*//
x
s|^|/** @} */ |
b
}
x
}
}
