module watchfire

go 1.24
