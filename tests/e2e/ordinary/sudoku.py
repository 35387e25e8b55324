GRID = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"


def free(cells, position):
    row, column = divmod(position, 9)
    taken = set(cells[row * 9 : row * 9 + 9]) | set(cells[column::9])
    for line in range(row // 3 * 3, row // 3 * 3 + 3):
        taken |= set(cells[line * 9 + column // 3 * 3 : line * 9 + column // 3 * 3 + 3])
    return [digit for digit in "123456789" if digit not in taken]


def solve(cells):
    if "0" not in cells:
        return cells
    position = min(
        (index for index, cell in enumerate(cells) if cell == "0"), key=lambda index: len(free(cells, index))
    )
    for digit in free(cells, position):
        found = solve([*cells[:position], digit, *cells[position + 1 :]])
        if found:
            return found
    return None


solved = solve(list(GRID))
for row in range(9):
    print("".join(solved[row * 9 : row * 9 + 9]))
