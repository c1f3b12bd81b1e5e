/* A cost as a function of message size. workflow/collstudy/launch/platforms.py has the same rule (line());
 * tests/test_curves.py checks both against the same vectors. */
#ifndef CURVE_HPP
#define CURVE_HPP

#include <algorithm>
#include <utility>
#include <vector>

/* Seconds as a function of bytes, given by points in ascending order of bytes: linear between points, constant below
 * the first one, and with the slope of the last two beyond the last one, but never negative. */
class Curve {
    std::vector<std::pair<double, double>> points;

  public:
    void add(double size, double seconds) {
        points.emplace_back(size, seconds);
    }
    double at(double size) const {
        if (points.empty())
            return 0;
        if (points.size() == 1 || size <= points.front().first)
            return points.front().second;
        auto next = std::upper_bound(points.begin() + 1, points.end() - 1, size,
                                     [](double value, const auto &point) { return value < point.first; });
        auto before = next - 1;
        double part = (size - before->first) / (next->first - before->first);
        return std::max(0.0, before->second + part * (next->second - before->second));
    }
};

#endif
